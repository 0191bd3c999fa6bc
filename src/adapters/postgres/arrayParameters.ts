import { LRUCache } from 'lru-cache'

/**
 * Binary encoding of array parameters (`$1::text[]`). In the text form that `pg` sends, each quote and backslash of a JSON
 * value is escaped, and Postgres parses the whole array again: for a batch of rows that costs both sides more than all else.
 *
 * Arrays with a value that this encoding does not represent exactly keep the text form, so that Postgres reads it by its own
 * rules, and refuses it with its own error.
 */

type Null = null | undefined

/** The binary form of one element type. */
type Element = {
  readonly oid: number
  /** The size of the value in bytes; undefined for a value that must keep the text form. */
  readonly sizeOf: (value: unknown) => number | undefined
  readonly write: (to: Buffer, value: unknown, at: number, size: number) => void
}

const INT4_BYTES = 4
const INT8_BYTES = 8
const INT4_MAX = 2 ** 31 - 1
const INT8_MAX = 2n ** 63n - 1n
const UINT4 = 2 ** 32
const US_PER_MS = 1000
/** Binary times are microseconds since this moment. */
const EPOCH_MS = Date.UTC(2000, 0, 1)
/** Days that not every month has are left to Postgres, because `Date` accepts the 30th of February. */
const TIME = /^[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,3})?Z$/

const textOf = (oid: number): Element => ({
  oid,
  sizeOf: value => (typeof value === 'string' ? Buffer.byteLength(value) : undefined),
  write: (to, value, at, size) => void to.write(value as string, at, size),
})

const integer: Element = {
  oid: 23,
  sizeOf: value => (Number.isInteger(value) && Math.abs(value as number) <= INT4_MAX ? INT4_BYTES : undefined),
  write: (to, value, at) => void to.writeInt32BE(value as number, at),
}

const bigint: Element = {
  oid: 20,
  sizeOf: value => (typeof value === 'bigint' && value <= INT8_MAX && value >= -INT8_MAX ? INT8_BYTES : undefined),
  write: (to, value, at) => void to.writeBigInt64BE(value as bigint, at),
}

const timestamptz: Element = {
  oid: 1184,
  sizeOf: value => (typeof value === 'string' && TIME.test(value) ? INT8_BYTES : undefined),
  write: (to, value, at) => {
    // Two halves: exact in a double, and cheaper than a bigint.
    const us = (Date.parse(value as string) - EPOCH_MS) * US_PER_MS
    to.writeInt32BE(Math.floor(us / UINT4), at)
    to.writeUInt32BE(us >>> 0, at + INT4_BYTES)
  },
}

const bytea: Element = {
  oid: 17,
  sizeOf: value => (Buffer.isBuffer(value) ? value.length : undefined),
  write: (to, value, at) => to.set(value as Buffer, at),
}

const UUID_BYTES = 16
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const uuid: Element = {
  oid: 2950,
  sizeOf: value => (typeof value === 'string' && UUID.test(value) ? UUID_BYTES : undefined),
  write: (to, value, at) => void to.write((value as string).replaceAll('-', ''), at, 'hex'),
}

const ELEMENTS: Readonly<Record<string, Element>> = {
  text: textOf(25),
  json: textOf(114),
  int: integer,
  integer,
  bigint,
  timestamptz,
  bytea,
  uuid,
}

/** Five integers: dimensions, whether there are nulls, type, length, index of the first element. */
const HEADER_BYTES = 20
const NULL_SIZE = -1

const isNull = (value: unknown): value is Null => value === null || value === undefined

/** The sizes of the values, -1 for null; undefined if one of them must keep the text form. */
const sizesOf = ({ sizeOf }: Element, values: readonly unknown[]): Int32Array | undefined => {
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
const encoded = (element: Element, values: readonly unknown[]): Buffer | undefined => {
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

type ArrayParameter = { readonly index: number; readonly element: Element }

const parametersOf = (text: string): readonly ArrayParameter[] =>
  [...text.matchAll(CAST)].flatMap(([, number, type = '']) => {
    const element = ELEMENTS[type]
    return element === undefined ? [] : [{ index: Number(number) - 1, element }]
  })

const known = new LRUCache<string, readonly ArrayParameter[]>({ max: TEXTS_MAX })

/** A copy of the values of a statement, with its arrays in binary form. */
export const withBinaryArrays = (text: string, values: readonly unknown[]): unknown[] => {
  const sent = [...values]
  if (!values.some(Array.isArray)) return sent
  const parameters = known.get(text) ?? parametersOf(text)
  known.set(text, parameters)
  for (const { index, element } of parameters) {
    const value = sent[index]
    if (Array.isArray(value) && value.length > 0) sent[index] = encoded(element, value) ?? value
  }
  return sent
}
