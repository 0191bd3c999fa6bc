import { PersistentMap, PersistentSet } from '../../streams/persistentMap.ts'

/**
 * Estimates the heap bytes of a value, rather too high, for the budgets of caches whose entries differ in size by
 * orders of magnitude. Parts that two values share are counted for both.
 */

const OBJECT_BYTES = 24
const MEMBER_BYTES = 32
const TEXT_BYTES = 24
/** V8 uses two bytes per character for a string that has any character outside Latin-1. */
const CHARACTER_BYTES = 2
const NUMBER_BYTES = 8
/** A node of the trie, its share of the branches above, and the id or small record in it. */
const ENTRY_BYTES = 256

const textBytes = (text: string): number => TEXT_BYTES + CHARACTER_BYTES * text.length

/** Accepts plain data and persistent collections without cycles. A collection is counted by its size, not walked. */
export const heapBytesOf = (value: unknown): number => {
  if (typeof value === 'string') return textBytes(value)
  if (typeof value !== 'object' || value === null) return NUMBER_BYTES
  if (value instanceof PersistentMap || value instanceof PersistentSet) return OBJECT_BYTES + ENTRY_BYTES * value.size
  let bytes = OBJECT_BYTES
  if (Array.isArray(value)) for (const item of value) bytes += MEMBER_BYTES + heapBytesOf(item)
  else for (const inner of Object.values(value)) bytes += MEMBER_BYTES + heapBytesOf(inner)
  return bytes
}
