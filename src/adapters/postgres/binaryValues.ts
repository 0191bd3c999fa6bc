/**
 * Values in the binary form of Postgres. In the text form that `pg` sends, each quote and backslash of a JSON value is escaped,
 * and Postgres parses it again: for a batch of rows that costs both sides more than all else.
 */

export const NULL_SIZE = -1

export const isNull = (value: unknown): value is null | undefined => value === null || value === undefined

/** The binary form of one type. */
export type BinaryType = {
  readonly oid: number
  /** The size of the value in bytes; undefined for a value that must keep the text form. */
  readonly sizeOf: (value: unknown) => number | undefined
  readonly write: (to: Buffer, value: unknown, at: number, size: number) => void
}

export const INT4_BYTES = 4
const INT8_BYTES = 8
const INT4_MAX = 2 ** 31 - 1
const INT8_MAX = 2n ** 63n - 1n
const UINT4 = 2 ** 32
const US_PER_MS = 1000
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

const eightBytes = new DataView(new ArrayBuffer(INT8_BYTES))

const bigint: BinaryType = {
  oid: 20,
  sizeOf: value => (typeof value === 'bigint' && value <= INT8_MAX && value >= -INT8_MAX ? INT8_BYTES : undefined),
  // By halves, because `writeBigInt64BE` computes each byte with bigints.
  write: (to, value, at) => {
    eightBytes.setBigInt64(0, value as bigint)
    to.writeInt32BE(eightBytes.getInt32(0), at)
    to.writeInt32BE(eightBytes.getInt32(INT4_BYTES), at + INT4_BYTES)
  },
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
  write: (to, value, at) => {
    // Two halves: exact in a double, and cheaper than a bigint.
    const us = (Date.parse(value as string) - EPOCH_MS) * US_PER_MS
    to.writeInt32BE(Math.floor(us / UINT4), at)
    to.writeUInt32BE(us >>> 0, at + INT4_BYTES)
  },
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
