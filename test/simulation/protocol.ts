import { DatabaseError } from 'pg'
import { valueTypes } from '../../src/adapters/postgres/types.ts'
import type { Row } from '../../src/ports.ts'

/** The messages of the Postgres protocol (version 3, text format) to and from the engine of the simulation. */

export type Field = { readonly name: string; readonly parse: (text: string) => unknown }
/** The answer of the engine: the rows of the last statement, and the parsers of their fields. */
export type Reply = { readonly rows: Row[]; readonly fields: readonly Field[] }

const WRITER_BYTES = 16_384
const UTF8_BYTES_MAX = 3
const INT16_BYTES = 2
const INT32_BYTES = 4
const HEADER_BYTES = 5
const NULL_LENGTH = -1

const element = (value: unknown): string =>
  value === null || value === undefined ? 'NULL' : `"${asText(value).replaceAll(/["\\]/g, String.raw`\$&`)}"`

/** A parameter in the text format, as `pg` writes it. */
const asText = (value: unknown): string => {
  if (typeof value === 'string') return value
  if (value instanceof Uint8Array) return String.raw`\x` + Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return `{${value.map(element).join(',')}}`
  return typeof value === 'bigint' ? value.toString() : JSON.stringify(value)
}

/** A writer of consecutive messages, into a buffer that is reused and grows when necessary. */
const createWriter = () => {
  let bytes = Buffer.allocUnsafe(WRITER_BYTES)
  let end = 0
  let begun = 0
  const reserve = (count: number): void => {
    if (end + count > bytes.length) bytes = Buffer.concat([bytes.subarray(0, end)], 2 * (end + count))
  }
  const writer = {
    begin: (type: string) => {
      reserve(HEADER_BYTES)
      begun = end + 1
      bytes[end] = type.charCodeAt(0)
      end += HEADER_BYTES
      return writer
    },
    int16: (value: number) => {
      reserve(INT16_BYTES)
      end = bytes.writeInt16BE(value, end)
      return writer
    },
    int32: (value: number) => {
      reserve(INT32_BYTES)
      end = bytes.writeInt32BE(value, end)
      return writer
    },
    text: (value: string) => {
      reserve(value.length * UTF8_BYTES_MAX + 1)
      end += bytes.write(value, end)
      bytes[end++] = 0
      return writer
    },
    parameter: (value: unknown) => {
      if (value === null || value === undefined) return writer.int32(NULL_LENGTH)
      const text = asText(value)
      reserve(INT32_BYTES + text.length * UTF8_BYTES_MAX)
      const length = bytes.write(text, end + INT32_BYTES)
      end = bytes.writeInt32BE(length, end) + length
      return writer
    },
    /** Ends the message, and writes its length at its beginning. */
    end: () => {
      bytes.writeInt32BE(end - begun, begun)
      return writer
    },
    take: (): Buffer => {
      const taken = bytes.subarray(0, end)
      end = 0
      return taken
    },
  }
  return writer
}

const writer = createWriter()

/** Messages to the engine. The bytes of a message are valid until the next one is written. */
export const messages = {
  /** Any number of statements without values. */
  query: (text: string): Buffer => writer.begin('Q').text(text).end().take(),
  /** Parses and plans a statement under this name, and requests a description of its rows. */
  prepare: (name: string, text: string): Buffer =>
    writer.begin('P').text(name).text(text).int16(0).end().begin('D').text(`S${name}`).end().begin('S').end().take(),
  execute: (name: string, values: readonly unknown[]): Buffer => {
    writer.begin('B').text('').text(name).int16(0).int16(values.length)
    for (const value of values) writer.parameter(value)
    return writer.int16(0).end().begin('E').text('').int32(0).end().begin('S').end().take()
  },
}

const textEnd = (bytes: Buffer, from: number): number => bytes.indexOf(0, from)

/** The name of a field is followed by table (4 bytes), column (2), type (4), size (2), modifier (4) and format (2). */
const TYPE_OFFSET = 7
const NEXT_FIELD_OFFSET = 19

const fieldsIn = (bytes: Buffer, body: number): readonly Field[] => {
  let at = body + INT16_BYTES
  return Array.from({ length: bytes.readInt16BE(body) }, () => {
    const end = textEnd(bytes, at)
    const name = bytes.toString('utf8', at, end)
    const parse: Field['parse'] = valueTypes.getTypeParser(bytes.readInt32BE(end + TYPE_OFFSET), 'text')
    at = end + NEXT_FIELD_OFFSET
    return { name, parse }
  })
}

const rowIn = (bytes: Buffer, body: number, fields: readonly Field[]): Row => {
  const row: Record<string, unknown> = {}
  let at = body + INT16_BYTES
  for (const { name, parse } of fields) {
    const length = bytes.readInt32BE(at)
    const from = at + INT32_BYTES
    at = from + Math.max(0, length)
    row[name] = length === NULL_LENGTH ? null : parse(bytes.toString('utf8', from, at))
  }
  return row
}

const errorIn = (bytes: Buffer, body: number, length: number): DatabaseError => {
  const parts = new Map<string, string>()
  for (let at = body; bytes[at] !== 0; ) {
    const end = textEnd(bytes, at)
    parts.set(String.fromCharCode(bytes[at] ?? 0), bytes.toString('utf8', at + 1, end))
    at = end + 1
  }
  const error = new DatabaseError(parts.get('M') ?? '', length, 'error')
  return Object.assign(error, { severity: parts.get('S'), code: parts.get('C'), detail: parts.get('D') })
}

/** Parses an answer, with the fields that it describes or else the `known` ones. Throws the first error in it. */
export const readReply = (bytes: Buffer, known: readonly Field[]): Reply => {
  let fields = known
  let rows: Row[] = []
  let failure: DatabaseError | undefined
  for (let at = 0; at < bytes.length; ) {
    const type = String.fromCharCode(bytes[at] ?? 0)
    const length = bytes.readInt32BE(at + 1)
    const body = at + HEADER_BYTES
    if (type === 'D') rows.push(rowIn(bytes, body, fields))
    if (type === 'T') [fields, rows] = [fieldsIn(bytes, body), []]
    if (type === 'E') failure ??= errorIn(bytes, body, length)
    at += 1 + length
  }
  if (failure) throw failure
  return { rows, fields }
}
