import { parquetReadObjects } from 'hyparquet'
import type { ExportFormat } from '../../streams/operation/index.ts'

/** Independent readers of export files, without the code that wrote them. */

export type Read = Readonly<Record<string, unknown>>

/** RFC 4180 exactly: records end with CR LF, quoted fields may contain anything, quotes are doubled. */
export const parseCsv = (text: string): (string | null)[][] => {
  const FIELD = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y
  const records: (string | null)[][] = [[]]
  while (FIELD.lastIndex < text.length) {
    const at = FIELD.lastIndex
    const [, quoted, plain = '', end] = FIELD.exec(text) ?? []
    if (end === undefined) throw new Error(`No field of RFC 4180 at ${at}: ${JSON.stringify(text.slice(at, at + 80))}`)
    records.at(-1)?.push(quoted?.replaceAll('""', '"') ?? (plain === '' ? null : plain))
    if (end !== ',') records.push([])
  }
  return records.slice(0, -1)
}

const csvRows = (bytes: Buffer): Read[] => {
  const [names = [], ...records] = parseCsv(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  return records.map(record => {
    if (record.length !== names.length)
      throw new Error(`${record.length} cells, ${names.length} columns: ${record.join()}`)
    return Object.fromEntries(names.map((name, index) => [String(name), record[index]]))
  })
}

const jsonlRows = (bytes: Buffer): Read[] => {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  if (text !== '' && !text.endsWith('\n')) throw new Error('The last line has no end.')
  return text
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line) as Read)
}

const parquetRows = async (bytes: Buffer): Promise<Read[]> =>
  (await parquetReadObjects({ file: new Uint8Array(bytes).buffer })) as Read[]

export const rowsOfFile = async (format: ExportFormat, bytes: Buffer): Promise<Read[]> => {
  if (format === 'csv') return csvRows(bytes)
  return format === 'jsonl' ? jsonlRows(bytes) : parquetRows(bytes)
}

/** The view of the API as the reader of this file format returns it. */
export const inFormat = (format: ExportFormat, view: Read): Read => {
  if (format === 'jsonl') return view
  const cells = Object.entries(view).map(([name, value]) => [
    name,
    format === 'csv' ? csvCell(value) : cell(name, value),
  ])
  return Object.fromEntries(cells) as Read
}

const csvCell = (value: unknown): string | null => {
  if (value === null) return null
  if (typeof value !== 'string') return JSON.stringify(value)
  return /^(?:'|\s*[=+\-@])/.test(value) ? `'${value}` : value
}

const INT32 = new Set(['version', 'exponent'])
const cell = (name: string, value: unknown): unknown => {
  if (typeof value === 'number') return INT32.has(name) ? value : BigInt(value)
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  return typeof value === 'string' && /_(?:at|date)$/.test(name) ? new Date(value) : value
}
