import type { ColumnType } from '../../../projections/projection.ts'
import type { FileFormat } from '../../ports.ts'

const encoder = new TextEncoder()

/**
 * Texts that spreadsheets calculate: = + - @ after any white space, control or format characters, which they skip; the
 * variants of these four in other scripts, which some treat as equal; and a tab or a carriage return, which some treat
 * as the end of the cell. Texts that begin with an apostrophe are included, so the escape can be undone.
 */
const ESCAPED = /^(?:'|[\s\p{Cc}\p{Cf}]*[=+\-@\t\r＝＋－＠﹦﹢﹣﹫−])/u

const textOf = (text: string): string => (ESCAPED.test(text) ? `'${text}` : text)

/** Many readers end a record at a line feed or a carriage return alone, so texts with one are quoted too. */
const SPECIAL = /[",\r\n]/

const quoted = (text: string): string => (SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** An absent value is an empty cell, an empty text is quoted, and an object is JSON. Numbers and instants need no quotes. */
const cellOf = (value: unknown, type: ColumnType | undefined): string => {
  if (value === null || value === undefined) return ''
  if (value === '') return '""'
  if (type === 'json') return quoted(JSON.stringify(value))
  if (type === 'text' && typeof value === 'string') return quoted(textOf(value))
  const text = `${value as string | number | bigint}`
  return typeof value === 'number' || typeof value === 'bigint' || type === 'timestamptz' ? text : quoted(text)
}

const END = '\r\n'

/**
 * CSV by RFC 4180 in UTF-8 with a header. A text that a spreadsheet would calculate, or that begins with an apostrophe,
 * is prefixed with an apostrophe (formula injection): removing one leading apostrophe from each such cell restores
 * every text. Numbers, times and JSON are not changed.
 *
 * The cells are written here, because the package csv-stringify takes most of the time of an export; a test compares
 * the files of both.
 */
export const csv: FileFormat = columns => {
  const names = Object.keys(columns)
  const types = Object.values(columns)
  let header = names.map(quoted).join(',') + END
  const lines = (rows: readonly object[]): Uint8Array => {
    let text = header
    header = ''
    for (const row of rows) {
      for (let index = 0; index < names.length; index += 1) {
        if (index > 0) text += ','
        text += cellOf((row as Record<string, unknown>)[names[index] ?? ''], types[index])
      }
      text += END
    }
    return encoder.encode(text)
  }
  // A file without rows still has the header.
  return { write: lines, end: () => lines([]) }
}
