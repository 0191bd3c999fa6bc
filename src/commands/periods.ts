import { bookedTime, FINAL_AFTER_MS } from '../../projections/bookEntries.ts'
import { BOOKS, BOOKS_CATEGORIES } from '../../projections/books/projection.ts'
import { endOfDay } from '../../projections/closings.ts'
import { orders } from '../../projections/orders/projection.ts'
import type { PeriodId } from '../../streams/ids.ts'
import type { Closing } from '../../streams/period/index.ts'
import { type Sql, type StoredEvent, Unavailable } from '../ports.ts'
import { type Context, handle, type Ledger } from './commandHandler.ts'
import { periodEntity } from './entities.ts'
import { derivedId } from '../lib/identifiers.ts'

export type ClosingDependencies = {
  readonly ledger: Ledger
  readonly sql: Sql
  /** The checkpoint of the books. */
  readonly bookedUpTo: () => Promise<bigint>
}

export type Closed =
  | { readonly kind: 'closed'; readonly last: Closing }
  /** The day is not over by the clock of Postgres. */
  | { readonly kind: 'not_over' }
  /** The log has no event of the tenant that concerns books: the tenant may be a typing error. */
  | { readonly kind: 'no_events' }
  /** The books lack events of the period. */
  | { readonly kind: 'behind' }
  /** The books were made anew, and lack what they had at the last closing. */
  | { readonly kind: 'made_anew' }
  /** Events that the books may need are parked. */
  | { readonly kind: 'parked'; readonly count: bigint }

/** A tenant has one stream of closings. */
export const periodIdOf = (tenant: string): PeriodId => derivedId('per', tenant)

const CATCH_UP_MAX_MS = 30_000
const POLL_MS = 100

/** Whether the books would date the event before the time. */
const isBefore = ({ metadata: { at }, storedAt }: StoredEvent, time: string): boolean =>
  Date.parse(bookedTime(typeof at === 'string' ? at : storedAt, storedAt)) < Date.parse(time)

/** Whether the log has an event of the tenant after the position that the books would date before the time. */
const hasEvent = async ({ store }: Ledger, after: bigint, { tenant, time }: { tenant: string; time: string }) => {
  const enough = new AbortController()
  try {
    const from = after < 0n ? 'start' : after
    for await (const item of store.subscribe({ after: from, categories: BOOKS_CATEGORIES, signal: enough.signal })) {
      if (item.kind === 'event' && item.event.metadata['tenant'] === tenant && isBefore(item.event, time)) return true
      if (item.kind === 'caught_up') return false
      if (item.kind === 'interrupted') throw new Unavailable('event store', { effect: 'none', cause: undefined })
    }
    return true
  } finally {
    enough.abort()
  }
}

/** The position up to which the books have every event of the period; undefined if not in time. */
const completeTo = async ({ ledger, bookedUpTo }: ClosingDependencies, of: { tenant: string; time: string }) => {
  const { world } = ledger
  const untilMs = world.monotonicMs() + CATCH_UP_MAX_MS
  for (;;) {
    const position = await bookedUpTo()
    if (!(await hasEvent(ledger, position, of))) return position
    if (world.monotonicMs() >= untilMs) return undefined
    await world.sleep(POLL_MS)
  }
}

/** Later than any event. */
const END_OF_TIME = '9999-12-31T23:59:59.999Z'

/** The list of orders, with which books begin, is faster than the log, and may be behind. */
const hasBooks = async ({ ledger, sql }: ClosingDependencies, tenant: string): Promise<boolean> => {
  const [row] = await sql<{ is_listed: boolean }>(
    `select exists (select from ${orders.name} where tenant_id = $1) as is_listed`,
    [tenant],
  )
  return row?.is_listed === true || (await hasEvent(ledger, -1n, { tenant, time: END_OF_TIME }))
}

/** Whether no event is dated before the time any more: the entry of one that came after the closing would have to move. */
const isOver = async (sql: Sql, time: string): Promise<boolean> => {
  const final = new Date(Date.parse(time) + FINAL_AFTER_MS).toISOString()
  const [row] = await sql<{ is_over: boolean }>('select now() >= $1::timestamptz as is_over', [final])
  return row?.is_over === true
}

/** An event that cannot be decoded may be of any tenant. */
const parkedUpTo = async (sql: Sql, tenant: string, position: bigint): Promise<bigint> => {
  const [row] = await sql<{ count: bigint }>(
    `select count(*) as count from parked_facts where delivery = $1 and tenant_id in ($2, '') and position <= $3`,
    [BOOKS, tenant, position],
  )
  return row?.count ?? 0n
}

/** Closes all days up to `through` (YYYY-MM-DD, UTC), which must be over by the clock of Postgres too. Throws Unavailable. */
export const closePeriod = async (
  dependencies: ClosingDependencies,
  { through, reason }: { readonly through: string; readonly reason: string },
  context: Context,
): Promise<Closed> => {
  const { ledger, sql } = dependencies
  const { tenant } = context
  const time = endOfDay(through)
  const id = periodIdOf(tenant)
  if (!(await isOver(sql, time))) return { kind: 'not_over' }
  // A closing cannot be undone, and would wait forever for a tenant of that name.
  if (!(await hasBooks(dependencies, tenant))) return { kind: 'no_events' }
  const complete_to = await completeTo(dependencies, { tenant, time })
  if (complete_to === undefined) return { kind: 'behind' }
  const count = await parkedUpTo(sql, tenant, complete_to)
  if (count > 0n) return { kind: 'parked', count }
  const command = { type: 'ClosePeriod' as const, through, complete_to, reason }
  const handled = await handle(ledger, periodEntity, id, { command, context })
  if (!handled.ok || handled.state.last === null) return { kind: 'made_anew' }
  return { kind: 'closed', last: handled.state.last }
}
