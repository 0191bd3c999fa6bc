import { stringify } from 'csv-stringify/sync'
import type { FileFormat } from '../ports.ts'

const encoder = new TextEncoder()
const EMPTY = /^$/

/** Absent is an empty cell, an empty text is a quoted one, and what has members of its own is JSON. */
const cellOf = (value: unknown, type: string | undefined): unknown =>
  type === 'json' && value !== null && value !== undefined ? JSON.stringify(value) : value

/**
 * CSV as RFC 4180 has it, in UTF-8, with a header. A text that a spreadsheet would take for a formula, because it begins
 * with = + - @, a tab or a carriage return (or the full-width forms, which some take for the same), gets an apostrophe
 * before it; numbers stay as they are.
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
      escape_formulas: true,
    })
    header = false
    return encoder.encode(text)
  }
  // A file of no rows still says what its columns are.
  return { write: lines, end: () => (header ? lines([]) : new Uint8Array()) }
}
