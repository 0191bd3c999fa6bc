import { stringify } from 'csv-stringify/sync'
import type { ColumnType } from '../../../projections/projection.ts'
import type { FileFormat } from '../../ports.ts'

const encoder = new TextEncoder()
const EMPTY = /^$/

/**
 * A text that spreadsheets calculate: = + - @ behind any white space, control or format characters, which they leave
 * out; the forms of these four for other scripts, which some take for the same; and a tab or a carriage return, which
 * some take for the end of the cell. A text with an apostrophe before it belongs to them, so that the escape can be undone.
 */
const ESCAPED = /^(?:'|[\s\p{Cc}\p{Cf}]*[=+\-@\t\r＝＋－＠﹦﹢﹣﹫−])/u

const textOf = (text: string): string => (ESCAPED.test(text) ? `'${text}` : text)

/** An absent value is an empty cell, an empty text a quoted one, and a value with members of its own is JSON. */
const cellOf = (value: unknown, type: ColumnType | undefined): unknown => {
  if (value === null || value === undefined) return value
  if (type === 'json') return JSON.stringify(value)
  return type === 'text' && typeof value === 'string' ? textOf(value) : value
}

/**
 * CSV as RFC 4180 has it, in UTF-8, with a header. A text that a spreadsheet would calculate, or that begins with an
 * apostrophe, gets an apostrophe before it: a reader who removes one apostrophe from each cell that begins with one has
 * every text as it was. Numbers, times and JSON stay as they are.
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
      // A line feed alone ends a record for many readers, so that a text which holds one is quoted, too.
      quote_record_delimiter: true,
      quoted_match: EMPTY,
    })
    header = false
    return encoder.encode(text)
  }
  // A file without rows still names its columns.
  return { write: lines, end: () => (header ? lines([]) : new Uint8Array()) }
}
