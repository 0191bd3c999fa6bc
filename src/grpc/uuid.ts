import { type ProtobufReader, WIRE, tagOf } from './protobufReader.ts'
import type { MessageWriter } from './protobufWriter.ts'

/** The message `UUID` of shared.proto, in its two forms: as text, or as two halves of 64 bits ("structured"). */

export type UuidForm = 'string' | 'structured'

const FIELD = { structured: 1, string: 2 }
const HALF = { high: 1, low: 2 }
const HALF_BITS = 64
const HALF_BYTES = 8
const HEX_DIGITS = 32

const STRUCTURED = tagOf(FIELD.structured, WIRE.bytes)
const STRING = tagOf(FIELD.string, WIRE.bytes)
const HIGH = tagOf(HALF.high, WIRE.varint)
const LOW = tagOf(HALF.low, WIRE.varint)

/** The canonical text of an id of two halves, signed or not. */
export const uuidOfHalves = (high: bigint, low: bigint): string => {
  const bits = (BigInt.asUintN(HALF_BITS, high) << BigInt(HALF_BITS)) | BigInt.asUintN(HALF_BITS, low)
  const hex = bits.toString(16).padStart(HEX_DIGITS, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The halves of an id, signed. */
export const halvesOf = (id: string): { high: bigint; low: bigint } => {
  const binary = Buffer.from(id.replaceAll('-', ''), 'hex')
  return { high: binary.readBigInt64BE(0), low: binary.readBigInt64BE(HALF_BYTES) }
}

/** Reads the canonical text of an id in either form; empty if the message has neither. */
export const readUuid = (from: ProtobufReader): string => {
  const outer = from.open()
  let id = ''
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === STRING) id = from.text().toLowerCase()
    else if (tag === STRUCTURED) id = readStructured(from)
    else from.skipField(tag)
  }
  from.close(outer)
  return id
}

const readStructured = (from: ProtobufReader): string => {
  const outer = from.open()
  let high = 0n
  let low = 0n
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === HIGH) high = from.uint64()
    else if (tag === LOW) low = from.uint64()
    else from.skipField(tag)
  }
  from.close(outer)
  return uuidOfHalves(high, low)
}

export const writeUuid = (writer: MessageWriter, field: number, id: string): void => {
  const uuid = writer.size()
  writer.text(FIELD.string, id)
  writer.nested(field, uuid)
}
