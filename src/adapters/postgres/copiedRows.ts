import { type Connection, type PoolClient, Query } from 'pg'
import type { TableRows } from '../../../projections/projection.ts'
import { BINARY_TYPES, type BinaryType, INT4_BYTES, isNull, NULL_SIZE } from './binaryValues.ts'

/**
 * `copy … from stdin` in its binary format, which costs Postgres about half of an insert of the same rows: pages are filled
 * and logged as a whole.
 */

/** Copies as one statement of a transaction: the rows of each table in the order of the text. */
export type Copy = { text: string; copied: readonly Buffer[] }

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
const FLAGS = 0
const EXTENSION_BYTES = 0
const END = -1
const INT2_BYTES = 2
const UTF8_BYTES_MAX = 3
const ASCII_MAX = 0x7f
const SHORT_TEXT_MAX = 48
/** Of one row in the estimate of the first capacity. */
const ROW_BYTES = 256

/** Bytes that grow as values are appended. */
class RowBytes {
  private bytes: Buffer
  private size = 0

  constructor(rows: number) {
    this.bytes = Buffer.allocUnsafe(SIGNATURE.length + rows * ROW_BYTES)
  }

  private reserve(count: number): void {
    if (this.size + count <= this.bytes.length) return
    const larger = Buffer.allocUnsafe(2 * (this.bytes.length + count))
    this.bytes.copy(larger, 0, 0, this.size)
    this.bytes = larger
  }

  raw(value: Buffer): void {
    this.reserve(value.length)
    this.bytes.set(value, this.size)
    this.size += value.length
  }

  int2(value: number): void {
    this.reserve(INT2_BYTES)
    this.size = this.bytes.writeInt16BE(value, this.size)
  }

  int4(value: number): void {
    this.reserve(INT4_BYTES)
    this.size = this.bytes.writeInt32BE(value, this.size)
  }

  /** UTF-8. Most texts are short and ASCII, and a loop over their characters costs less than a call of the encoder. */
  text(value: string): void {
    const { length } = value
    this.reserve(INT4_BYTES + UTF8_BYTES_MAX * length)
    const at = this.size + INT4_BYTES
    const size = length <= SHORT_TEXT_MAX && this.hasAscii(value, at) ? length : this.bytes.write(value, at)
    this.bytes.writeInt32BE(size, this.size)
    this.size = at + size
  }

  /** Writes the text up to its first character that is not ASCII. Whether it has none. */
  private hasAscii(text: string, at: number): boolean {
    const { bytes } = this
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index)
      if (code > ASCII_MAX) return false
      bytes[at + index] = code
    }
    return true
  }

  /** False, with nothing appended, for a value that has no binary form. */
  value({ sizeOf, write }: BinaryType, value: unknown): boolean {
    const size = isNull(value) ? NULL_SIZE : sizeOf(value)
    if (size === undefined) return false
    this.reserve(INT4_BYTES + Math.max(size, 0))
    const at = this.bytes.writeInt32BE(size, this.size)
    if (size !== NULL_SIZE) write(this.bytes, value, at, size)
    this.size = at + Math.max(size, 0)
    return true
  }

  written(): Buffer {
    return this.bytes.subarray(0, this.size)
  }
}

type Column = { readonly name: string; readonly type: BinaryType; readonly isText: boolean; readonly isJson: boolean }

const TEXTS: readonly string[] = ['text', 'json']

const columnsOf = ({ columns }: TableRows['table']): readonly Column[] | undefined => {
  const binaryColumns = Object.entries(columns).flatMap(([name, typeName]) => {
    const type = BINARY_TYPES[typeName]
    return type === undefined ? [] : [{ name, type, isText: TEXTS.includes(typeName), isJson: typeName === 'json' }]
  })
  return binaryColumns.length === Object.keys(columns).length ? binaryColumns : undefined
}

const appendRow = (to: RowBytes, columns: readonly Column[], row: Readonly<Record<string, unknown>>): boolean => {
  to.int2(columns.length)
  for (const { name, type, isText, isJson } of columns) {
    const value = isJson ? JSON.stringify(row[name]) : row[name]
    if (isText && typeof value === 'string') to.text(value)
    else if (!to.value(type, value)) return false
  }
  return true
}

const bytesOf = ({ table, rows }: TableRows): Buffer | undefined => {
  const columns = columnsOf(table)
  if (columns === undefined) return undefined
  const to = new RowBytes(rows.length)
  to.raw(SIGNATURE)
  to.int4(FLAGS)
  to.int4(EXTENSION_BYTES)
  for (const row of rows) if (!appendRow(to, columns, row as Record<string, unknown>)) return undefined
  to.int2(END)
  return to.written()
}

const textOf = ({ table: { name, columns } }: TableRows): string =>
  `copy ${name} (${Object.keys(columns).join(', ')}) from stdin (format binary)`

/** Undefined if a value has no binary form. */
export const copyOf = (added: readonly TableRows[]): Copy | undefined => {
  const copied: Buffer[] = []
  for (const rows of added) {
    const bytes = bytesOf(rows)
    if (bytes === undefined) return undefined
    copied.push(bytes)
  }
  return { text: added.map(textOf).join('; '), copied }
}

/** The members of a connection of `pg` for copies, which its type does not have. */
type CopyConnection = Connection & {
  readonly sendCopyFromChunk: (chunk: Buffer) => void
  readonly endCopyFrom: () => void
}

/** The rows follow the statement at once: after an error Postgres ignores them. */
class CopyQuery extends Query {
  constructor({ text, copied }: Copy, ended: (error: Error | undefined | null) => void) {
    super({ text }, ended)
    const { submit } = this
    this.submit = (connection: Connection) => {
      const to = connection as CopyConnection
      to.stream.cork()
      submit.call(this, to)
      for (const rows of copied) {
        to.sendCopyFromChunk(rows)
        to.endCopyFrom()
      }
      to.stream.uncork()
    }
  }

  /** Called by `pg` when Postgres is ready for the rows, which were sent already. */
  handleCopyInResponse(): void {
    return undefined
  }
}

/** Executes the copy. Rejects with the errors of `query`. */
export const copyInto = (client: PoolClient, copy: Copy, query_timeout?: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const query = new CopyQuery(copy, error => (error ? reject(error) : resolve()))
    client.query(query_timeout === undefined ? query : Object.assign(query, { query_timeout }))
  })
