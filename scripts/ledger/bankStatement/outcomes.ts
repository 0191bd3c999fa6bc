import { isDeferredAndNotFailed, type Payment, type Settlement } from './ledgerPayments.ts'
import { decimalOf } from '../../demo/money.ts'
import { lineIdOf, type StatementLine } from './statementLine.ts'

/** The status of each line. Amounts are compared before states, so that a repeated import gives the same status. */

export const STATUSES = [
  'matched',
  'over',
  'under',
  'currency_mismatch',
  'duplicate',
  'missing',
  'not_settled',
  'expected',
  'ignored',
] as const
export type Status = (typeof STATUSES)[number]

export type Outcome = {
  readonly status: Status
  /** Absent for a payment that no line names. */
  readonly line?: StatementLine
  readonly payment?: Payment
  readonly detail: string
}

/** `settledBy`: the correlation id of the settlement, which is read if the amounts agree. */
export type NamedPayment = Payment & { readonly settledBy?: string | undefined }

/** A settlement that is to be sent, with the outcome that it has if it is the first one of the payment. */
export type Proposal = Outcome & { readonly settle?: { readonly payment: Payment; readonly lineId: string } }

/** A line with its id and the payments that it names, the strongest name first. */
export type NamedLine = {
  readonly line: StatementLine
  readonly lineId: string
  readonly payments: readonly NamedPayment[]
}

/** The lines of one import so far; it grows with the lines that name a payment. */
export type ImportState = {
  /** The line that settles a payment in this import, by the payment's id. */
  readonly lines: Map<string, number>
  /** The number of lines with equal content and kind. */
  readonly occurrences: Map<string, number>
  /** The ids of payments that a line names. */
  readonly named: Set<string>
  readonly reversals: Reversals
}

/** A reversal takes one credit back. It is stored under each name that it may mean. */
type Reversal = { isUsed: boolean }
/** The reversals of the statement that no credit was matched with, by name and amount (`reversalKey`). */
export type Reversals = Map<string, Reversal[]>

type Amount = { readonly amount: bigint; readonly currency: string }

const reversalKey = (name: string, { amount, currency }: Amount): string => `${currency} ${amount} ${name}`

/** Adds a reversal with the references and the payment ids that it may mean. */
export const addReversal = (reversals: Reversals, names: Iterable<string>, amount: Amount): void => {
  const reversal = { isUsed: false }
  for (const name of names) {
    const key = reversalKey(name, amount)
    const ofKey = reversals.get(key)
    if (ofKey === undefined) reversals.set(key, [reversal])
    else ofKey.push(reversal)
  }
}

const textOf = ({ amount, currency }: Amount): string => `${decimalOf(amount, currency)} ${currency}`

const missing = (line: StatementLine, payment: Payment | undefined): Outcome => {
  if (payment === undefined) return { status: 'missing', line, detail: 'No payment has a reference of this line.' }
  const why = payment.settlement === 'immediate' ? 'is not deferred' : 'has failed'
  return { status: 'missing', line, payment, detail: `${payment.id} ${why}.` }
}

const withoutCredit = (line: StatementLine, payment: Payment | undefined): Outcome => {
  if (line.kind === 'not_booked') return { status: 'ignored', line, detail: 'Not booked: no money has moved.' }
  const named = payment === undefined ? {} : { payment }
  if (line.kind === 'reversal')
    return {
      status: 'missing',
      line,
      ...named,
      detail: 'An earlier booking was reversed, and the ledger has no event for it.',
    }
  if (payment === undefined) return { status: 'ignored', line, detail: 'Money out, for no payment of the ledger.' }
  return { status: 'missing', line, payment, detail: 'Money out that names a payment: compare its refunds.' }
}

const withOtherAmount = (line: StatementLine, payment: Payment): Outcome => {
  const detail = `${textOf(line)} came for ${payment.id} over ${textOf(payment)}.`
  if (line.currency !== payment.currency) return { status: 'currency_mismatch', line, payment, detail }
  return { status: line.amount > payment.amount ? 'over' : 'under', line, payment, detail }
}

/** The count before this one. */
const countUp = (counts: Map<string, number>, name: string): number => {
  const before = counts.get(name) ?? 0
  counts.set(name, before + 1)
  return before
}

/** Made from the content of the line alone: equal lines of one file are told apart by their order. */
export const nextLineId = (line: StatementLine, { occurrences }: ImportState): string =>
  lineIdOf(line, countUp(occurrences, `${line.kind} ${lineIdOf(line, 0)}`))

/** Whether a reversal of the statement takes back a credit for the payment. The reversal is used up by it. */
const isTakenBack = ({ reversals }: ImportState, payment: Payment): boolean =>
  [payment.id, payment.reference ?? payment.id].some(name => {
    const named = reversals.get(reversalKey(name, payment)) ?? []
    for (let reversal = named.pop(); reversal !== undefined; reversal = named.pop()) {
      if (reversal.isUsed) continue
      reversal.isUsed = true
      return true
    }
    return false
  })

const duplicate = (line: StatementLine, payment: Payment, earlier?: number): Outcome => {
  // The earlier line may have found that it cannot be settled yet.
  const why = earlier === undefined ? 'was settled already, not by this line' : `is paid already, by line ${earlier}`
  return { status: 'duplicate', line, payment, detail: `${payment.id} ${why}.` }
}

/** The outcome of a credit that some payments have the amount and the currency of. */
const withExactAmount = (
  { line, lineId }: NamedLine,
  exact: readonly [NamedPayment, ...NamedPayment[]],
  importState: ImportState,
): Proposal => {
  const matched = (payment: Payment): Outcome => {
    importState.lines.set(payment.id, line.line)
    return { status: 'matched', line, payment, detail: '' }
  }
  const own = exact.find(({ settledBy }) => settledBy === lineId)
  if (own !== undefined) return matched(own)
  const returned = exact.find(payment => isTakenBack(importState, payment))
  if (returned !== undefined)
    return { status: 'under', line, payment: returned, detail: 'The statement reverses this booking.' }
  const payment = exact.find(({ id, settledBy }) => settledBy === undefined && !importState.lines.has(id))
  if (payment !== undefined) return { ...matched(payment), settle: { payment, lineId } }
  return duplicate(line, exact[0], importState.lines.get(exact[0].id))
}

/** The outcome of a line. Lines must be decided in their order. */
export const outcomeOf = (named: NamedLine, importState: ImportState): Proposal => {
  const { line, payments } = named
  if (line.kind !== 'credit') return withoutCredit(line, payments[0])
  const candidates = payments.filter(isDeferredAndNotFailed)
  const [first] = candidates
  if (first === undefined) return missing(line, payments[0])
  const exact = candidates.filter(({ amount, currency }) => amount === line.amount && currency === line.currency)
  const [firstExact, ...others] = exact
  const proposal =
    firstExact === undefined
      ? withOtherAmount(line, first)
      : withExactAmount(named, [firstExact, ...others], importState)
  if (proposal.payment !== undefined) importState.named.add(proposal.payment.id)
  return proposal
}

/** The outcome after the settlement was sent: another line, or another caller, may have been first. */
export const afterSettlement = (
  line: StatementLine,
  { payment, lineId }: NonNullable<Proposal['settle']>,
  settlement: Settlement,
): Outcome => {
  switch (settlement.kind) {
    case 'settled':
      return settlement.by === lineId ? { status: 'matched', line, payment, detail: '' } : duplicate(line, payment)
    case 'failed':
      return missing(line, { ...payment, state: 'failed' })
    case 'not_accepted': {
      const detail = `${payment.id} is not accepted by its invoice yet: the same command settles it later.`
      return { status: 'not_settled', line, payment, detail }
    }
  }
}

export const expected = (payment: Payment): Outcome => ({
  status: 'expected',
  payment,
  detail: 'No line names this payment.',
})
