import { createHash } from 'node:crypto'
import { CURRENCIES, exponentOf } from '../../../streams/money.ts'
import { StartupError } from '../../../src/lib/startupError.ts'

/**
 * - credit: money came in.
 * - debit: money went out.
 * - reversal: an earlier booking was taken back, in either direction.
 * - not_booked: announced, pending or for information; no money has moved.
 */
export type LineKind = 'credit' | 'debit' | 'reversal' | 'not_booked'

export type StatementLine = {
  /** The line of the file on which the booking begins; the first line is 1. */
  readonly line: number
  readonly kind: LineKind
  /** YYYY-MM-DD, of the account's bank. Absent for some bookings that are not booked. */
  readonly bookedOn: string | undefined
  /** Minor units, not negative. */
  readonly amount: bigint
  readonly currency: string
  /** References in fields that are made for them, the strongest first. */
  readonly references: readonly string[]
  /** Free texts, which may contain a reference. */
  readonly texts: readonly string[]
  /** The texts that distinguish this booking from others: account, the bank's ids, date, amount, references, texts. */
  readonly identity: readonly string[]
}

/** The file cannot be used: nothing was changed. */
export class StatementError extends StartupError {
  constructor(line: number, reason: string) {
    super(`Line ${line}: ${reason} Nothing was changed.`)
    this.name = 'StatementError'
  }
}

/** ISO 20022 permits 18 digits; zeros at the end do not count. */
const DECIMAL = /^(\d{1,18})(?:\.(\d{1,18}))?$/

const currencies: ReadonlySet<string> = new Set(CURRENCIES)

/** Throws a StatementError for another form than a decimal with a point, and for digits that the currency lacks. */
export const minorUnitsOf = (text: string, currency: string, line: number): bigint => {
  if (!currencies.has(currency))
    throw new StatementError(line, `${JSON.stringify(currency)} is no currency with a minor unit (ISO 4217).`)
  const [, units, decimals = ''] = DECIMAL.exec(text) ?? []
  if (units === undefined)
    throw new StatementError(line, `The amount ${JSON.stringify(text)} is no decimal number with a point.`)
  const exponent = exponentOf(currency)
  const fraction = decimals.replace(/0+$/, '')
  if (fraction.length > exponent)
    throw new StatementError(line, `The amount ${text} has more digits after the point than ${currency}: ${exponent}.`)
  return BigInt(units + fraction.padEnd(exponent, '0'))
}

/** A date may have a time after it, or a time zone. */
const DATE = /^\d{4}-\d{2}-\d{2}(?=$|T|Z$|[+-]\d{2}:\d{2}$)/

/** The date with which the text begins, as YYYY-MM-DD; undefined if it begins with none that exists. */
export const dateIn = (text: string): string | undefined => {
  const [date] = DATE.exec(text) ?? []
  return date !== undefined && new Date(`${date}T00:00:00Z`).toJSON()?.startsWith(date) ? date : undefined
}

export const dateOf = (text: string, line: number): string => {
  const date = dateIn(text)
  if (date !== undefined) return date
  throw new StatementError(line, `${JSON.stringify(text)} is not a date: YYYY-MM-DD.`)
}

const CORRELATION_DIGITS = 40

/**
 * The correlation id with which the line settles a payment, by which a later import recognizes its own settlement in
 * the payment's history. It depends on the content of the line and not on its place, so that overlapping statements
 * agree. `occurrence` counts equal lines of one file, from 0.
 */
export const lineIdOf = ({ identity }: StatementLine, occurrence: number): string => {
  const content = JSON.stringify([...identity, occurrence])
  return `bank-${createHash('sha256').update(content).digest('hex').slice(0, CORRELATION_DIGITS)}`
}
