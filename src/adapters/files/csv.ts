import { stringify } from 'csv-stringify/sync'
import type { ColumnType } from '../../../projections/projection.ts'
import type { FileFormat } from '../../ports.ts'

/** The csv format of exports. */

const encoder = new TextEncoder()
const EMPTY = /^$/

/**
 * Texts that spreadsheets calculate: = + - @ after any white space, control or format characters, which they skip; the
 * variants of these four in other scripts, which some treat as equal; and a tab or a carriage return, which some treat
 * as the end of the cell. Texts that begin with an apostrophe are included, so that the escape can be undone.
 */
const ESCAPED = /^(?:'|[\s\p{Cc}\p{Cf}]*[=+\-@\t\r＝＋－＠﹦﹢﹣﹫−])/u

const textOf = (text: string): string => (ESCAPED.test(text) ? `'${text}` : text)

/** An absent value is an empty cell, an empty text is quoted, and an object is JSON. */
const cellOf = (value: unknown, type: ColumnType | undefined): unknown => {
  if (value === null || value === undefined) return value
  if (type === 'json') return JSON.stringify(value)
  return type === 'text' && typeof value === 'string' ? textOf(value) : value
}

/**
 * CSV by RFC 4180 in UTF-8 with a header. A text that a spreadsheet would calculate, or that begins with an apostrophe,
 * is prefixed with an apostrophe (formula injection): removing one leading apostrophe from each such cell restores
 * every text. Numbers, times and JSON are not changed.
 */
export const csv: FileFormat = columns => {
  const names = Object.keys(columns)
  let header = true
  const lines = (rows: readonly object[]): Uint8Array => {
    const cells = rows.map(row => names.map(name => cellOf((row as Record<string, unknown>)[name], columns[name])))
    const text = stringify(cells, {
      columns: names,
      header,
      record_delimiter: '\r\n',
      // Many readers end a record at a line feed alone, so that texts with one are quoted too.
      quote_record_delimiter: true,
      quoted_match: EMPTY,
    })
    header = false
    return encoder.encode(text)
  }
  // A file without rows still has the header.
  return { write: lines, end: () => (header ? lines([]) : new Uint8Array()) }
}
