import { BOOKS_CATEGORIES, BOOKS_TABLES } from '../../../projections/books/projection.ts'
import { partsOf } from '../../../streams/aggregate.ts'
import type { StoredEvent } from '../../../src/ports.ts'
import { bookedEvents, foldedBooks } from '../../projections/moneyHistories.ts'
import type { SimulatedLog } from '../eventStore.ts'
import type { Engine } from '../postgres.ts'
import { isReadable } from './folding.ts'
import { violation, type Violation } from './violation.ts'

/** The books compared with the log: every entry is the fold of the streams, and every sum is that of the postings. */

const wrong = (detail: string): Violation => violation('the books are the fold of the streams', detail)

const asText = (value: unknown): string =>
  JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? String(inner) : inner))

type Entry = { readonly position: bigint; readonly event_id: string; readonly tenant_id: string; readonly at: string }
type Posting = {
  readonly position: bigint
  readonly account: string
  readonly direction: string
  readonly amount: bigint
}
type Balance = {
  readonly tenant_id: string
  readonly account: string
  readonly position: bigint
  readonly debits: bigint
  readonly credits: bigint
}

/** An event is compared if this build can read its stream and that of its order, which the entry depends on. */
const comparable = (log: SimulatedLog) => {
  const known = new Map<string, boolean>()
  const canRead = (stream: string): boolean => {
    const match = known.get(stream) ?? isReadable(log.stream(stream))
    known.set(stream, match)
    return match
  }
  return ({ stream, data }: StoredEvent): boolean => {
    const order = data['order_id']
    return canRead(stream) && (typeof order !== 'string' || canRead(`order-${order}`))
  }
}

/** The members of an entry that do not depend on events which the books may lack. */
const ENTRY = 'position, event_id, tenant_id, kind, order_id, invoice_id, payment_id, currency, reverses'
const membersOf = (entry: object): string =>
  asText(ENTRY.split(', ').map(name => (entry as Record<string, unknown>)[name] ?? null))
const linesOf = (postings: readonly Posting[], position: bigint): string =>
  asText(
    postings
      .filter(one => one.position === position)
      .map(({ account, direction, amount }) => [account, direction, String(amount)]),
  )

/** The sums of each account, folded from the postings of the tables themselves. */
const wrongSums = (
  entries: readonly Entry[],
  postings: readonly Posting[],
  balances: readonly Balance[],
): Violation[] => {
  const tenants = new Map(entries.map(({ position, tenant_id }) => [String(position), tenant_id]))
  const own = Map.groupBy(postings, ({ position, account }) => asText([tenants.get(String(position)), account]))
  return balances.flatMap(({ tenant_id, account, position, debits, credits }) => {
    const before = (own.get(asText([tenant_id, account])) ?? []).filter(one => one.position <= position)
    const sumOf = (side: string): bigint =>
      before.reduce((sum, { direction, amount }) => (direction === side ? sum + amount : sum), 0n)
    const expected = [sumOf('debit'), sumOf('credit')].join('/')
    const actual = [debits, credits].join('/')
    return actual === expected
      ? []
      : [wrong(`${tenant_id} ${account} at ${position}: ${actual}, the postings ${expected}`)]
  })
}

export const checkBooks = async (log: SimulatedLog, engine: Engine, settledAt: string): Promise<Violation[]> => {
  const { entries: entryTable, postings: postingTable, balances: balanceTable } = BOOKS_TABLES
  const entries = await engine.query<Entry>(`select ${ENTRY}, at from ${entryTable.name} order by position`)
  const postings = await engine.query<Posting>(`select * from ${postingTable.name} order by position, line`)
  const balances = await engine.query<Balance>(`select * from ${balanceTable.name}`)
  const isComparable = comparable(log)
  const booked = log.events.filter(({ stream }) => BOOKS_CATEGORIES.includes(partsOf(stream).category))
  const folded = foldedBooks(bookedEvents(booked.filter(isComparable)))
  const byPosition = new Map(entries.map(entry => [String(entry.position), entry]))
  const stored = new Map(log.events.map(event => [String(event.position), event]))
  const violations: Violation[] = []
  for (const expected of folded.entries) {
    const row = byPosition.get(String(expected.position))
    if ((stored.get(String(expected.position))?.storedAt ?? '') >= settledAt) continue
    if (row === undefined) violations.push(wrong(`they lack ${membersOf(expected)}`))
    else if (membersOf(row) !== membersOf(expected))
      violations.push(wrong(`${membersOf(row)}, the log ${membersOf(expected)}`))
    else if (linesOf(postings, expected.position) !== linesOf(folded.postings, expected.position))
      violations.push(
        wrong(`${linesOf(postings, expected.position)}, the log ${linesOf(folded.postings, expected.position)}`),
      )
  }
  for (const { position, event_id } of entries)
    if (stored.get(String(position))?.id !== event_id)
      violations.push(wrong(`entry ${event_id} at ${position} is of no event`))
  return [...violations, ...wrongSums(entries, postings, balances)]
}
