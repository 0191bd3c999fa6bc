/**
 * The little of the protobuf encoding that the hot path needs. An event is sent to every reader of its stream, and the
 * general library takes several times as long for it as all the rest of a short read.
 */

const VARINT_WIRE = 0
const BYTES_WIRE = 2
const UINT64_BITS = 64

/** The parts of a message, in order, not yet joined. */
export type Parts = readonly Buffer[]

const varint = (value: bigint | number): Buffer => {
  const bytes: number[] = []
  let rest = BigInt.asUintN(UINT64_BITS, BigInt(value))
  if (rest < Number.MAX_SAFE_INTEGER) return smallVarint(Number(rest))
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}

const smallVarint = (value: number): Buffer => {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  bytes.push(rest)
  return Buffer.from(bytes)
}

const tag = (field: number, wire: number): number => (field << 3) | wire

/** An integer of 64 bits, signed or not; zero is left out, as proto3 has it. */
export const integer = (field: number, value: bigint): Parts =>
  value === 0n ? [] : [smallVarint(tag(field, VARINT_WIRE)), varint(value)]

/** Bytes or text; empty ones are left out. */
export const bytes = (field: number, value: Buffer): Parts =>
  value.length === 0 ? [] : [smallVarint(tag(field, BYTES_WIRE)), smallVarint(value.length), value]

export const text = (field: number, value: string): Parts => bytes(field, Buffer.from(value, 'utf8'))

/** A message within a message; also when it is empty. */
export const nested = (field: number, ...fields: readonly Parts[]): Parts => {
  const parts = fields.flat()
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return [smallVarint(tag(field, BYTES_WIRE)), smallVarint(length), ...parts]
}

/** One entry of a map of text to text. */
export const entry = (field: number, key: string, value: string): Parts => nested(field, text(1, key), text(2, value))
