/**
 * The little of the protobuf encoding that the hot path needs. An event is sent to every reader of its stream, and the
 * general library takes several times as long for it as all the rest of a short read.
 */

const VARINT_WIRE = 0
const BYTES_WIRE = 2
const UINT64_BITS = 64
const SEVEN_BITS = 0x80

/** A field of a message: how long it is, and how it writes itself, so that a message is one buffer filled once. */
export type Field = { readonly length: number; readonly write: (to: Buffer, at: number) => number }

const varintLength = (value: number): number => {
  let length = 1
  for (let rest = value; rest >= SEVEN_BITS; rest = Math.floor(rest / SEVEN_BITS)) length += 1
  return length
}

const writeVarint = (to: Buffer, at: number, value: number): number => {
  let end = at
  let rest = value
  for (; rest >= SEVEN_BITS; rest = Math.floor(rest / SEVEN_BITS)) to[end++] = (rest % SEVEN_BITS) | SEVEN_BITS
  to[end++] = rest
  return end
}

const tag = (field: number, wire: number): number => (field << 3) | wire

const NOTHING: Field = { length: 0, write: (_, at) => at }

/** What no double holds: the halves of an id, and the revision of a tombstone. */
const largeInteger = (field: number, value: bigint): Field => {
  const digits: number[] = []
  let rest = BigInt.asUintN(UINT64_BITS, value)
  for (; rest > 0x7fn; rest >>= 7n) digits.push(Number(rest & 0x7fn) | SEVEN_BITS)
  digits.push(Number(rest))
  const head = tag(field, VARINT_WIRE)
  return {
    length: varintLength(head) + digits.length,
    write: (to, at) => {
      let end = writeVarint(to, at, head)
      for (const digit of digits) to[end++] = digit
      return end
    },
  }
}

/** An integer of 64 bits, signed or not; zero is left out, as proto3 has it. */
export const integer = (field: number, value: bigint): Field => {
  if (value === 0n) return NOTHING
  if (value < 0n || value > Number.MAX_SAFE_INTEGER) return largeInteger(field, value)
  const number = Number(value)
  const head = tag(field, VARINT_WIRE)
  return {
    length: varintLength(head) + varintLength(number),
    write: (to, at) => writeVarint(to, writeVarint(to, at, head), number),
  }
}

const delimited = (field: number, size: number, write: (to: Buffer, at: number) => void): Field => {
  const head = tag(field, BYTES_WIRE)
  return {
    length: varintLength(head) + varintLength(size) + size,
    write: (to, at) => {
      const start = writeVarint(to, writeVarint(to, at, head), size)
      write(to, start)
      return start + size
    },
  }
}

/** Empty bytes are left out. */
export const bytes = (field: number, value: Buffer): Field =>
  value.length === 0 ? NOTHING : delimited(field, value.length, (to, at) => void value.copy(to, at))

/** So is empty text. */
export const text = (field: number, value: string): Field =>
  value === '' ? NOTHING : delimited(field, Buffer.byteLength(value), (to, at) => void to.write(value, at))

const lengthOf = (fields: readonly Field[]): number => fields.reduce((sum, { length }) => sum + length, 0)

const writeAll = (fields: readonly Field[], to: Buffer, from: number): void => {
  let at = from
  for (const field of fields) at = field.write(to, at)
}

/** A message within a message; also when it is empty. */
export const nested = (field: number, ...fields: readonly Field[]): Field =>
  delimited(field, lengthOf(fields), (to, at) => writeAll(fields, to, at))

/** One entry of a map of text to text. */
export const entry = (field: number, key: string, value: string): Field => nested(field, text(1, key), text(2, value))

/** The bytes of a message that has these fields. */
export const messageOf = (...fields: readonly Field[]): Buffer => {
  const message = Buffer.allocUnsafe(lengthOf(fields))
  writeAll(fields, message, 0)
  return message
}
