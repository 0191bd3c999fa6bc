import { CsvError, parse } from 'csv-parse'
import { Readable } from 'node:stream'
import { dateOf, minorUnitsOf, type StatementLine, StatementError } from './statementLine.ts'

const REQUIRED = ['booking_date', 'amount', 'currency', 'reference'] as const
const OPTIONAL = ['id', 'text', 'reversal'] as const
const COLUMNS: readonly string[] = [...REQUIRED, ...OPTIONAL]
const DELIMITERS = [',', ';', '\t']
const RECORD_CHARS_MAX = 65_536

type Row = { readonly [Name in (typeof REQUIRED)[number]]: string } & {
  readonly [Name in (typeof OPTIONAL)[number]]?: string
}
type Parsed = { readonly record: Row; readonly info: { readonly lines: number }; readonly raw: string }

/** Throws a StatementError unless the header has each required column, and no column twice or of another name. */
const checkedHeader = (names: readonly string[]): string[] => {
  const refuse = (reason: string): never => {
    throw new StatementError(1, reason)
  }
  const missing = REQUIRED.filter(name => !names.includes(name))
  if (missing.length > 0) refuse(`The header lacks ${missing.join(', ')}.`)
  const stray = names.find(name => !COLUMNS.includes(name))
  if (stray !== undefined) refuse(`There is no column ${JSON.stringify(stray)}: ${COLUMNS.join(', ')}.`)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) refuse(`The header has ${twice} twice.`)
  return [...names]
}

const reversalOf = (text: string, line: number): boolean => {
  if (text === '' || text === 'false') return false
  if (text === 'true') return true
  throw new StatementError(line, `The column reversal is ${JSON.stringify(text)}: true, false or empty.`)
}

const lineOf = (row: Row, line: number): StatementLine => {
  const { booking_date, amount: signed, currency, reference, id = '', text = '', reversal = '' } = row
  const bookedOn = dateOf(booking_date, line)
  const isDebit = signed.startsWith('-')
  const amount = minorUnitsOf(isDebit ? signed.slice(1) : signed, currency, line)
  const kind = reversalOf(reversal, line) ? 'reversal' : isDebit ? 'debit' : 'credit'
  const references = reference === '' ? [] : [reference]
  const texts = text === '' ? [] : [text]
  const identity = ['csv', id, kind, bookedOn, amount.toString(), currency, reference, text]
  return { line, kind, bookedOn, amount, currency, references, texts, identity }
}

/** The delimiter that the header has. Names of columns contain none. */
const delimiterOf = (header: string): string => DELIMITERS.find(delimiter => header.includes(delimiter)) ?? ','

/**
 * Returns a function from the parser's line, on which a row ends, to the line on which it begins: a quoted text may
 * have several lines. It must be called for each row in order, because the parser counts each CRLF in a quoted text as
 * two lines.
 */
const createFirstLine = (): ((last: number, raw: string) => number) => {
  let countedTwice = 0
  return (last, raw) => {
    // Empty lines before the row are part of its raw text.
    const row = raw.trim()
    const first = last - countedTwice - (row.match(/[\r\n]/g)?.length ?? 0)
    countedTwice += row.match(/\r\n/g)?.length ?? 0
    return first
  }
}

const rawOf = (error: unknown): string =>
  error instanceof CsvError && typeof error['raw'] === 'string' ? error['raw'] : ''

const reasonOf = (error: unknown): string => (error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : '')

/** Reads the rows in their order. Throws a StatementError with the line for a file without the documented form. */
export const readCsvStatement = async function* (
  chunks: AsyncIterable<string>,
  header: string,
): AsyncGenerator<StatementLine> {
  const parser = parse({
    columns: checkedHeader,
    delimiter: delimiterOf(header),
    info: true,
    raw: true,
    trim: true,
    skip_empty_lines: true,
    max_record_size: RECORD_CHARS_MAX,
  })
  const firstLine = createFirstLine()
  const source = Readable.from(chunks)
  source.on('error', error => parser.destroy(error))
  source.pipe(parser)
  try {
    for await (const { record, info, raw } of parser as AsyncIterable<Parsed>)
      yield lineOf(record, firstLine(info.lines, raw))
  } catch (error) {
    if (error instanceof StatementError) throw error
    throw new StatementError(firstLine(parser.info.lines, rawOf(error)), `This is no sound CSV: ${reasonOf(error)}.`)
  } finally {
    source.destroy()
  }
}
