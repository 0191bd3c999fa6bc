import { LRUCache } from 'lru-cache'
import { BINARY_TYPES, type BinaryType, INT4_BYTES, isNull, NULL_SIZE } from './binaryValues.ts'

/**
 * Binary encoding of array parameters (`$1::text[]`). Arrays with a value that has no binary form (binaryValues.ts) keep the
 * text form, so Postgres reads it by its own rules, and refuses it with its own error.
 */

/** Five integers: dimensions, whether there are nulls, type, length, index of the first element. */
const HEADER_BYTES = 20

/** The sizes of the values, -1 for null; undefined if one of them must keep the text form. */
const sizesOf = ({ sizeOf }: BinaryType, values: readonly unknown[]): Int32Array | undefined => {
  const sizes = new Int32Array(values.length)
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index]
    const size = isNull(value) ? NULL_SIZE : sizeOf(value)
    if (size === undefined) return undefined
    sizes[index] = size
  }
  return sizes
}

/** Undefined for values that must keep the text form. Loops by index, since this runs for each value of each row. */
const encoded = (element: BinaryType, values: readonly unknown[]): Buffer | undefined => {
  const sizes = sizesOf(element, values)
  if (sizes === undefined) return undefined
  let total = HEADER_BYTES
  let nulls = 0
  for (const size of sizes) {
    total += INT4_BYTES + Math.max(size, 0)
    if (size === NULL_SIZE) nulls = 1
  }
  const bytes = Buffer.allocUnsafe(total)
  let at = 0
  for (const part of [1, nulls, element.oid, values.length, 1]) at = bytes.writeInt32BE(part, at)
  for (let index = 0; index < values.length; index += 1) {
    const size = sizes[index] ?? NULL_SIZE
    at = bytes.writeInt32BE(size, at)
    if (size === NULL_SIZE) continue
    element.write(bytes, values[index], at, size)
    at += size
  }
  return bytes
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
