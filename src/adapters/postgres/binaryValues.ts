/** The text form of `pg` escapes each quote of a JSON value, and Postgres parses it again: of a batch that costs most. */

const NULL_SIZE = -1

export type BinaryType = {
  readonly oid: number
  /** The size of the value in bytes; undefined for a value that must keep the text form. */
  readonly sizeOf: (value: unknown) => number | undefined
  readonly write: (to: Buffer, value: unknown, at: number, size: number) => void
}

const INT4_BYTES = 4
const INT8_BYTES = 8
const INT4_MAX = 2 ** 31 - 1
const INT8_MAX = 2n ** 63n - 1n
const US_PER_MS = 1_000n
/** Binary times are microseconds since this moment. */
const EPOCH_MS = Date.UTC(2000, 0, 1)
const TIME = /^[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,3})?Z$/

const textOf = (oid: number): BinaryType => ({
  oid,
  sizeOf: value => (typeof value === 'string' ? Buffer.byteLength(value) : undefined),
  write: (to, value, at, size) => void to.write(value as string, at, size),
})

const integer: BinaryType = {
  oid: 23,
  sizeOf: value => (Number.isInteger(value) && Math.abs(value as number) <= INT4_MAX ? INT4_BYTES : undefined),
  write: (to, value, at) => void to.writeInt32BE(value as number, at),
}

const bigint: BinaryType = {
  oid: 20,
  sizeOf: value => (typeof value === 'bigint' && value <= INT8_MAX && value >= -INT8_MAX ? INT8_BYTES : undefined),
  write: (to, value, at) => void to.writeBigInt64BE(value as bigint, at),
}

const DAY_LENGTH = 'yyyy-mm-dd'.length
const DAY_OF_MONTH_AT = 'yyyy-mm-'.length
const DAYS_OF_EVERY_MONTH = 28

/** Whether the month has the day: `Date` takes the 30th of February for a day of March. */
const hasDay = (time: string): boolean => {
  const day = Number(time.slice(DAY_OF_MONTH_AT, DAY_LENGTH))
  return day <= DAYS_OF_EVERY_MONTH || new Date(time).getUTCDate() === day
}

const timestamptz: BinaryType = {
  oid: 1184,
  sizeOf: value => (typeof value === 'string' && TIME.test(value) && hasDay(value) ? INT8_BYTES : undefined),
  write: (to, value, at) => void to.writeBigInt64BE(BigInt(Date.parse(value as string) - EPOCH_MS) * US_PER_MS, at),
}

const bytea: BinaryType = {
  oid: 17,
  sizeOf: value => (Buffer.isBuffer(value) ? value.length : undefined),
  write: (to, value, at) => to.set(value as Buffer, at),
}

const UUID_BYTES = 16
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const uuid: BinaryType = {
  oid: 2950,
  sizeOf: value => (typeof value === 'string' && UUID.test(value) ? UUID_BYTES : undefined),
  write: (to, value, at) => void to.write((value as string).replaceAll('-', ''), at, 'hex'),
}

/** By name of the type. */
export const BINARY_TYPES: Readonly<Record<string, BinaryType>> = {
  text: textOf(25),
  json: textOf(114),
  int: integer,
  integer,
  bigint,
  timestamptz,
  bytea,
  uuid,
}

/** The sizes of the values, -1 for null; undefined if one of them must keep the text form. Types repeat. */
const sizesOf = (types: readonly BinaryType[], values: readonly unknown[]): Int32Array | undefined => {
  const sizes = new Int32Array(values.length)
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index]
    const isNull = value === null || value === undefined
    const size = isNull ? NULL_SIZE : types[index % types.length]?.sizeOf(value)
    if (size === undefined) return undefined
    sizes[index] = size
  }
  return sizes
}

/**
 * The values after their sizes, with `head` before each row; undefined if one must stay text. By index: iterators take
 * 1 µs more a row, of the 35 µs of an event in a rebuild.
 */
export const framed = (
  types: readonly BinaryType[],
  values: readonly unknown[],
  head: Buffer,
  rowLength: number,
): Buffer | undefined => {
  const sizes = sizesOf(types, values)
  if (sizes === undefined) return undefined
  const heads = (head.length * values.length) / rowLength
  const bytes = Buffer.allocUnsafe(sizes.reduce((sum, size) => sum + INT4_BYTES + Math.max(size, 0), heads))
  let at = 0
  for (let index = 0; index < values.length; index += 1) {
    if (index % rowLength === 0) at += head.copy(bytes, at)
    const size = sizes[index] ?? NULL_SIZE
    at = bytes.writeInt32BE(size, at)
    if (size === NULL_SIZE) continue
    types[index % types.length]?.write(bytes, values[index], at, size)
    at += size
  }
  return bytes
}
