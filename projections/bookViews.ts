import { type EntryId, idFromBytes, type IdPrefix, isId, type Id, CROCKFORD } from '../streams/ids.ts'
import { exponentOf } from '../streams/money.ts'
import { ENTRY_KINDS, type EntryKind } from './bookings.ts'
import { chartRow, type Direction } from './chartOfAccounts.ts'
import type { AccountAt, EntryAt, PostingAt, TotalsAt } from './books/queries.ts'
import { exactAmount } from './exactAmounts.ts'

/** The views of accounts, entries and the trial balance, over HTTP and in exports. */

const UUID_BYTES = 16
const BITS_PER_CHARACTER = 5
const UUID = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/

/** The id of an entry: the event id that it is made from, in the form of the ledger's ids. */
export const entryIdOf = (eventId: string): EntryId => {
  const bytes = new Uint8Array(UUID_BYTES + 1)
  bytes.set(Buffer.from(eventId.replaceAll('-', ''), 'hex').subarray(0, UUID_BYTES))
  return idFromBytes('ent', bytes)
}

/** The event id of an entry; undefined for an id that no event has. */
export const eventIdOfEntry = (id: Id<IdPrefix>): string | undefined => {
  if (!isId('ent', id)) return undefined
  let value = 0n
  for (const character of id.slice('ent_'.length))
    value = (value << BigInt(BITS_PER_CHARACTER)) | BigInt(CROCKFORD.indexOf(character))
  const hex = (value >> 2n).toString(16).padStart(2 * UUID_BYTES, '0')
  const eventId = hex.replace(UUID, '$1-$2-$3-$4-$5')
  return entryIdOf(eventId) === id ? eventId : undefined
}

/** Amounts in minor units, on the normal side of the account: a negative balance stands on the other side. */
const balancesOf = ({ currency, debits, credits, pending }: AccountAt, side: Direction) => {
  const sign = side === 'debit' ? 1n : -1n
  const onSide = sign * pending
  const posted = sign * (debits - credits) - onSide
  const available = posted + (onSide < 0n ? onSide : 0n)
  return {
    exponent: exponentOf(currency),
    posted: exactAmount(posted),
    pending: exactAmount(onSide),
    available: exactAmount(available),
  }
}

export const accountView = (row: AccountAt) => {
  const { name, type, normal_side } = chartRow(row.kind)
  return {
    code: row.code,
    name,
    type,
    currency: row.currency,
    exponent: exponentOf(row.currency),
    customer_reference: row.customer_reference,
    normal_side,
    balances: balancesOf(row, normal_side),
  }
}

export const trialBalanceRow = (row: AccountAt) => ({
  account: row.code,
  account_name: chartRow(row.kind).name,
  customer_reference: row.customer_reference,
  ...totalView(row),
})

export const totalView = ({ currency, debits, credits }: TotalsAt) => ({
  currency,
  exponent: exponentOf(currency),
  debits: exactAmount(debits),
  credits: exactAmount(credits),
})

const linkTo = (eventId: string | null): EntryId | null => (eventId === null ? null : entryIdOf(eventId))

export const entryView = (row: EntryAt) => ({
  id: entryIdOf(row.event_id),
  at: row.at,
  position: row.position.toString(),
  event_id: row.event_id,
  kind: row.kind as EntryKind,
  description: ENTRY_KINDS[row.kind as EntryKind],
  order_id: row.order_id,
  invoice_id: row.invoice_id,
  payment_id: row.payment_id,
  reverses: linkTo(row.reverses),
  reversed_by: linkTo(row.reversed_by),
  postings: row.postings.map(({ account, direction, amount }) => ({
    account,
    direction: direction as Direction,
    amount,
    currency: row.currency,
  })),
})

const kindOfAccount = (code: string): string => code.slice(0, code.indexOf('.'))

/** One posting, as the row of an exported journal or of the statement of an account. */
export const postingView = (row: PostingAt) => {
  const { account, currency, debits, credits, customer_reference } = row
  const { name: account_name, normal_side } = chartRow(kindOfAccount(account))
  const isDebitSide = normal_side === 'debit'
  const {
    id: entry_id,
    reversed_by: _,
    postings: __,
    ...entry
  } = entryView({ ...row, reversed_by: null, postings: [] })
  return {
    entry_id,
    ...entry,
    /** The number of the posting in its entry, from 1. */
    line: row.line + 1,
    account,
    direction: row.direction as Direction,
    amount: exactAmount(row.amount),
    currency,
    exponent: exponentOf(currency),
    /** The balance of the account after the entry, on the normal side of the account. */
    balance: exactAmount(isDebitSide ? debits - credits : credits - debits),
    account_name,
    customer_reference,
  }
}
