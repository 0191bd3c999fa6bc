import { BOOKS, BOOKS_CATEGORIES } from '../../../../projections/books/projection.ts'
import { type BooksAt, positionAt } from '../../../../projections/books/queries.ts'
import { positionOf } from '../../../feeds/checkpoints.ts'
import { reachedPosition } from '../collection.ts'
import { Problem } from '../../response/problemCatalogue.ts'
import type { Call } from '../../route.ts'

/**
 * The position as of which a request for the books is answered. The books follow the log, and lack the events that are parked, so
 * that an answer about a moment of the past could lack entries that the log has: such an answer is given only when it is complete.
 */

type AnyCall = Call<unknown, unknown, unknown>

export type AsOf = { readonly as_of?: string | undefined; readonly as_of_position?: string | undefined }

/** A request about a moment waits this long for the books to follow the log. */
const CATCH_UP_MAX_MS = 5_000

/** Behind every position of a log. */
const LAST_POSITION = 2n ** 63n - 1n

const behind = (position: bigint): Problem =>
  new Problem('projection_behind', { detail: `The books are as of position ${position}.` })

/** The position of the last event that the books lack; `none`, or `unknown` when the log does not tell in time. */
const lastMissing = async (
  { ledger: { store, world } }: AnyCall,
  after: bigint,
  waitMs: number,
): Promise<bigint | 'none' | 'unknown'> => {
  const over = new AbortController()
  void world.sleep(waitMs, over.signal).then(() => over.abort())
  let last: bigint | 'none' = 'none'
  const from = after === 0n ? 'start' : after
  try {
    for await (const item of store.subscribe({ after: from, categories: BOOKS_CATEGORIES, signal: over.signal })) {
      if (item.kind === 'event') last = item.event.position
      if (item.kind === 'caught_up') return last
      if (item.kind === 'interrupted') return 'unknown'
    }
    return 'unknown'
  } finally {
    over.abort()
  }
}

/** Resolves when the books have every event that the log had at the call. Throws Problem `projection_behind`. */
const caughtUp = async (call: AnyCall): Promise<void> => {
  const { database, tail, concurrencyLimits, principal, ledger } = call
  const untilMs = ledger.world.monotonicMs() + CATCH_UP_MAX_MS
  const leftMs = (): number => Math.max(0, untilMs - ledger.world.monotonicMs())
  const current = await positionOf(database.sql, BOOKS)
  if (current >= (await ledger.store.head())) return
  const release = await concurrencyLimits.waiting.take(principal)
  try {
    const wanted = await lastMissing(call, current, leftMs())
    if (wanted === 'none') return
    if (wanted === 'unknown') throw behind(current)
    await tail.waitUntilReached(BOOKS, wanted, leftMs())
    const reached = await positionOf(database.sql, BOOKS)
    if (reached < wanted) throw behind(reached)
  } finally {
    release()
  }
}

/** Books that are made for the first time, or anew, are refused until they had every event once. */
const complete = async (call: AnyCall): Promise<void> => {
  const { sql } = call.database
  const [found] = await sql('select from complete_read_models where name = $1', [BOOKS])
  if (found !== undefined) return
  await caughtUp(call)
  await sql('insert into complete_read_models (name) values ($1) on conflict do nothing', [BOOKS])
}

/** The first event of the tenant, or of an unknown one, that the books lack because it is parked; null when there is none. */
const firstParked = async ({ database, principal }: AnyCall): Promise<bigint | null> => {
  const [found] = await database.sql<{ position: bigint | null }>(
    `select min(position) as position from parked_facts where delivery = $1 and tenant_id in ($2, '')`,
    [BOOKS, principal.tenant],
  )
  return found?.position ?? null
}

/** Throws Problem `projection_behind` if an event up to and including the position is parked. */
const withoutParked = async (call: AnyCall, position: bigint): Promise<void> => {
  const parked = await firstParked(call)
  if (parked !== null && parked <= position) throw behind(parked > 0n ? parked - 1n : 0n)
}

const lastEntryAt = async ({ database, principal }: AnyCall, time: string): Promise<BooksAt> => {
  const { text, values } = positionAt(principal.tenant, time)
  const [found] = await database.sql<BooksAt>(text, values)
  return found ?? { position: null, next: null }
}

/**
 * The tenant's last entry at the time. A later entry proves that no other one will come before it, except from parked events
 * between the two, whose times are not known.
 */
const atTime = async (call: AnyCall, time: string): Promise<bigint> => {
  let found = await lastEntryAt(call, time)
  if (found.next === null) {
    await caughtUp(call)
    found = await lastEntryAt(call, time)
  }
  await withoutParked(call, found.next ?? LAST_POSITION)
  return found.position ?? 0n
}

const atPosition = async (call: AnyCall, position: bigint): Promise<bigint> => {
  if ((await positionOf(call.database.sql, BOOKS)) < position) {
    await caughtUp(call)
    const head = await call.ledger.store.head()
    if (position > head) throw behind(head)
  }
  await withoutParked(call, position)
  return position
}

/**
 * The checkpoint, or the position before the first parked event: an answer without a moment is complete up to it. Parked events
 * are read after the checkpoint, which moves in the transaction that parks them.
 */
const atPresent = async (call: AnyCall, reached: bigint): Promise<bigint> => {
  const parked = await firstParked(call)
  if (parked === null || parked > reached) return reached
  const position = parked > 0n ? parked - 1n : 0n
  if (call.minPosition !== undefined && position < call.minPosition) throw behind(position)
  return position
}

/**
 * `pinned`: the position of the page before, so that all pages of a list are of one moment. Throws Problem `validation_failed`
 * for a time and a position together, and `projection_behind` for a moment that the books do not have completely.
 */
export const booksAt = async (call: AnyCall, { as_of, as_of_position }: AsOf, pinned?: bigint): Promise<bigint> => {
  if (as_of !== undefined && as_of_position !== undefined)
    throw new Problem('validation_failed', {
      errors: [
        { pointer: '?as_of_position', code: 'not_with_as_of', detail: 'Send as_of or as_of_position, not both.' },
      ],
    })
  await complete(call)
  const reached = await reachedPosition(call, BOOKS)
  if (pinned !== undefined) return atPosition(call, pinned)
  if (as_of !== undefined) return atTime(call, as_of)
  return as_of_position === undefined ? atPresent(call, reached) : atPosition(call, BigInt(as_of_position))
}
