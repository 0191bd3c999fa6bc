import { BOOKS, BOOKS_CATEGORIES } from '../../../../projections/books/projection.ts'
import { type BooksAt, positionAt } from '../../../../projections/books/queries.ts'
import { positionOf } from '../../../feeds/checkpoints.ts'
import { reachedPosition } from '../collection.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import type { AnyCall } from '../../services.ts'

/**
 * The position as of which the books are shown. They may lag behind the log, and lack parked events: an answer about a
 * past moment needs every event up to it, and is 503 `projection_behind` otherwise.
 */

export type AsOf = { readonly as_of?: string | undefined; readonly as_of_position?: string | undefined }

/** A request about a moment waits this long for the books to follow the log. */
const CATCH_UP_MAX_MS = 5_000

/** Greater than every position of a log. */
const AFTER_LOG = 2n ** 63n - 1n

const behind = (position: bigint): Problem =>
  new Problem('projection_behind', { detail: `The books are complete up to position ${position}. Try again shortly.` })

/** The position of the last event after `after` for the books; `unknown` if the log does not end in time. */
const lastMissing = async ({ ledger: { store, world } }: AnyCall, after: bigint, waitMs: number) => {
  const ended = new AbortController()
  void world.sleep(waitMs, ended.signal).then(() => ended.abort())
  let last: bigint | 'none' = 'none'
  const from = after === 0n ? 'start' : after
  try {
    for await (const item of store.subscribe({ after: from, categories: BOOKS_CATEGORIES, signal: ended.signal })) {
      if (item.kind === 'event') last = item.event.position
      if (item.kind === 'caught_up') return last
      if (item.kind === 'interrupted') return 'unknown'
    }
    return 'unknown'
  } finally {
    ended.abort()
  }
}

/** Resolves when the books have every event that the log had at the call. Throws Problem `projection_behind`. */
const caughtUp = async (call: AnyCall): Promise<void> => {
  const { database, tail, concurrencyLimits, principal, ledger } = call
  const untilMs = ledger.world.monotonicMs() + CATCH_UP_MAX_MS
  const leftMs = (): number => Math.max(0, untilMs - ledger.world.monotonicMs())
  const current = await positionOf(database.sql, BOOKS)
  if (current >= (await ledger.store.head())) return
  const release = await concurrencyLimits.take('waits', principal)
  try {
    const target = await lastMissing(call, current, leftMs())
    if (target === 'none') return
    if (target === 'unknown') throw behind(current)
    await tail.waitUntilReached(BOOKS, target, leftMs())
    const reached = await positionOf(database.sql, BOOKS)
    if (reached < target) throw behind(reached)
  } finally {
    release()
  }
}

/** Throws Problem `projection_behind` while the books are made from the start of the log. */
const requireComplete = async (call: AnyCall): Promise<void> => {
  const { sql } = call.database
  const [completed] = await sql('select from complete_read_models where name = $1', [BOOKS])
  if (completed !== undefined) return
  await caughtUp(call)
  await sql('insert into complete_read_models (name) values ($1) on conflict do nothing', [BOOKS])
}

/** The position of the first dead letter of the tenant, or of an unknown tenant; null without one. */
const firstParked = async ({ database, principal }: AnyCall): Promise<bigint | null> => {
  const [parked] = await database.sql<{ position: bigint | null }>(
    `select min(position) as position from parked_facts where delivery = $1 and tenant_id in ($2, '')`,
    [BOOKS, principal.tenant],
  )
  return parked?.position ?? null
}

/** Throws Problem `projection_behind` if an event up to and including the position is parked. */
const requireUnparked = async (call: AnyCall, position: bigint): Promise<void> => {
  const parked = await firstParked(call)
  if (parked !== null && parked <= position) throw behind(parked > 0n ? parked - 1n : 0n)
}

const lastEntryAt = async ({ database, principal }: AnyCall, time: string): Promise<BooksAt> => {
  const { text, values } = positionAt(principal.tenant, time)
  const [row] = await database.sql<BooksAt>(text, values)
  return row ?? { position: null, next: null }
}

/**
 * The position of the tenant's last entry at the time. Entries are in the order of their times, so a later entry proves
 * that none is missing before it, except those of dead letters in between.
 */
const atTime = async (call: AnyCall, time: string): Promise<bigint> => {
  let entry = await lastEntryAt(call, time)
  if (entry.next === null) {
    await caughtUp(call)
    entry = await lastEntryAt(call, time)
  }
  await requireUnparked(call, entry.next ?? AFTER_LOG)
  return entry.position ?? 0n
}

const atPosition = async (call: AnyCall, position: bigint): Promise<bigint> => {
  if ((await positionOf(call.database.sql, BOOKS)) < position) {
    await caughtUp(call)
    const head = await call.ledger.store.head()
    if (position > head) throw behind(head)
  }
  await requireUnparked(call, position)
  return position
}

/**
 * The checkpoint, or the position before the first dead letter: as far as the books are complete. Dead letters are read
 * after the checkpoint, which moves in the transaction that parks them.
 */
const atPresent = async (call: AnyCall, reached: bigint): Promise<bigint> => {
  const parked = await firstParked(call)
  if (parked === null || parked > reached) return reached
  const position = parked > 0n ? parked - 1n : 0n
  if (call.minPosition !== undefined && position < call.minPosition) throw behind(position)
  return position
}

/** `pinned`: the position of the list's first page. Throws Problem: time and position together, incomplete books. */
export const booksAt = async (call: AnyCall, { as_of, as_of_position }: AsOf, pinned?: bigint): Promise<bigint> => {
  if (as_of !== undefined && as_of_position !== undefined)
    throw new Problem('validation_failed', {
      errors: [
        { pointer: '?as_of_position', code: 'not_with_as_of', detail: 'Send as_of or as_of_position, not both.' },
      ],
    })
  await requireComplete(call)
  const reached = await reachedPosition(call, BOOKS)
  if (pinned !== undefined) return atPosition(call, pinned)
  if (as_of !== undefined) return atTime(call, as_of)
  return as_of_position === undefined ? atPresent(call, reached) : atPosition(call, BigInt(as_of_position))
}
