import { LRUCache } from 'lru-cache'
import { BINARY_TYPES, type BinaryType, framed } from './binaryValues.ts'

/** Binary array parameters. One with a value without a binary form stays text, which Postgres reads by its own rules. */

/** Undefined for values that must keep the text form. */
const encoded = (element: BinaryType, values: readonly unknown[]): Buffer | undefined => {
  const hasNulls = values.some(value => value === null || value === undefined)
  // Dimensions, whether there are nulls, type, length, index of the first element.
  const head = Buffer.from(Int32Array.of(1, Number(hasNulls), element.oid, values.length, 1).buffer).swap32()
  return framed([element], values, head, values.length)
}

const CAST = /\$(\d+)::(\w+)\[\]/g
const TEXTS_MAX = 1_024

type ArrayParameter = { readonly index: number; readonly element: BinaryType }

const parametersOf = (text: string): readonly ArrayParameter[] =>
  [...text.matchAll(CAST)].flatMap(([, number, type = '']) => {
    const element = BINARY_TYPES[type]
    return element === undefined ? [] : [{ index: Number(number) - 1, element }]
  })

const cache = new LRUCache<string, readonly ArrayParameter[]>({ max: TEXTS_MAX })

/** A copy of the values of a statement, with its arrays in binary form. */
export const withBinaryArrays = (text: string, values: readonly unknown[]): unknown[] => {
  const sent = [...values]
  if (!values.some(Array.isArray)) return sent
  const parameters = cache.get(text) ?? parametersOf(text)
  cache.set(text, parameters)
  for (const { index, element } of parameters) {
    const value = sent[index]
    if (Array.isArray(value) && value.length > 0) sent[index] = encoded(element, value) ?? value
  }
  return sent
}
