import { partsOf } from '../../../streams/aggregate.ts'
import { moveCheckpoint, positionOf, Replaced, takeCheckpoint } from '../../feeds/checkpoints.ts'
import { parkedKeys } from '../../feeds/deadLetters.ts'
import type { Feed } from '../../feeds/subscriptionLoop.ts'
import { type SubscriptionDelivery, deliveriesUpTo } from '../../feeds/subscriptionCheckpoints.ts'
import { type StoredEvent, Unavailable } from '../../ports.ts'
import { announceDeadLetters } from './deadLetters.ts'
import { createLines, type Lines } from './deliveries.ts'
import type { SubscriptionDependencies } from './dependencies.ts'
import { createTenantTurns, type Turns } from './turnsByTenant.ts'
import { NAME } from './permissionMonitor.ts'

/**
 * Delivers to every subscription its facts. One loop for all of them: each round is one look at the database, which says
 * for which of them there is anything to do; those get a batch each, in turns by tenant, so that neither one with a long
 * way to go nor a tenant with many keeps the others waiting. Work on topics is done beside the loop.
 *
 * The facts come from the journal that GET /events reads, up to where that has got to. The subscriptions come from their
 * read model; the log is followed only to know which of its rows are out of date, so that one that was paused a moment ago
 * is not delivered because a projection is late.
 */

const ROWS = 'subscriptions_v1'
const ROUND_MS = 200
/** A look at the database is good for so long: a pause stops the delivery within a second. */
const FRESH_MS = 400
/** A subscription whose topic makes trouble rests, while the others flow. */
const REST_MS = 5_000
/** So many failures of the broker in a row are no trouble of theirs: it is down. */
const FAILURES_MAX = 2

type Rounds = {
  readonly parts: SubscriptionDependencies
  /** The newest event of a subscription, as long as its row does not have it. */
  readonly newest: Map<string, Pick<StoredEvent, 'revision' | 'position'>>
  /** Until when a subscription rests. */
  readonly resting: Map<string, number>
  readonly turns: Turns<SubscriptionDelivery>
}

/**
 * Those whose row will have an event that it does not have yet. An event that the read model has passed without taking it
 * is not among them, once it is no longer parked: an operator has discarded it.
 */
const outOfDate = async (
  { newest, parts: { database } }: Rounds,
  lines: readonly SubscriptionDelivery[],
): Promise<ReadonlySet<string>> => {
  for (const { id, revision } of lines) if ((newest.get(id)?.revision ?? 0n) <= revision) newest.delete(id)
  const late = lines.filter(({ id }) => newest.has(id))
  if (late.length === 0) return new Set()
  const passed = await positionOf(database.sql, ROWS)
  const parked = await parkedKeys(database.sql, ROWS)
  for (const { id } of late) if ((newest.get(id)?.position ?? 0n) <= passed && !parked.has(id)) newest.delete(id)
  return new Set(newest.keys())
}

const isBrokers = (error: unknown): boolean => error instanceof Unavailable && error.part === 'fact bus'

/** Whether the loop can go on without this one: neither the database nor being replaced is the trouble of one alone. */
const isItsOwn = (error: unknown): boolean =>
  !(error instanceof Replaced) && !(error instanceof Unavailable && error.part === 'database')

const deliverAll = async (rounds: Rounds, lines: Lines, signal: AbortSignal): Promise<void> => {
  const { parts, resting, turns } = rounds
  const { database, ledger, log } = parts
  let failures = 0

  const attend = async (line: SubscriptionDelivery, reached: bigint): Promise<boolean> => {
    turns.taken(line)
    try {
      const more = await lines.attend(line, reached)
      failures = 0
      resting.delete(line.id)
      return more
    } catch (error) {
      if (!isItsOwn(error)) throw error
      resting.set(line.id, ledger.world.monotonicMs() + REST_MS)
      log.warn({ subscription: line.id, error }, 'a subscription cannot be delivered now')
      await lines.setAside(line.id)
      if (isBrokers(error) && ++failures >= FAILURES_MAX) throw error
      return false
    }
  }

  /** Says whether there may be more to do at once. */
  const round = async (): Promise<boolean> => {
    const readAtMs = ledger.world.monotonicMs()
    const reached = await positionOf(database.sql, 'facts_v1')
    let more = false
    lines.lookBegins()
    const all = await deliveriesUpTo(database.sql, reached)
    const late = await outOfDate(rounds, all)
    for (const line of turns.inOrder(all)) {
      if (signal.aborted) return false
      if (ledger.world.monotonicMs() - readAtMs > FRESH_MS) return true
      if (late.has(line.id) || (resting.get(line.id) ?? 0) > ledger.world.monotonicMs()) continue
      more = (await attend(line, reached)) || more
    }
    return more
  }

  while (!signal.aborted) {
    const more = await round()
    // After every round, also one that was broken off: with many subscriptions each of them is.
    if (!signal.aborted) await announceDeadLetters(parts, lines.open())
    if (!more) await ledger.world.sleep(ROUND_MS, signal)
  }
}

export const subscriptionsFeed = (parts: SubscriptionDependencies): Feed => {
  const { sql } = parts.database
  return {
    name: NAME,
    categories: ['subscription'],
    beginRun: async (epoch, signal) => {
      const rounds: Rounds = { parts, newest: new Map(), resting: new Map(), turns: createTenantTurns() }
      return {
        after: await takeCheckpoint(sql, NAME, epoch),
        processBatch: async (events, position) => {
          // Not even decoded: an event that this build cannot read concerns its own subscription, whose row parks it.
          for (const { stream, revision, position: at } of events)
            rounds.newest.set(partsOf(stream).id, { revision, position: at })
          await moveCheckpoint(sql, [NAME], position, epoch)
        },
        background: async () => {
          const lines = createLines(parts, epoch)
          try {
            await deliverAll(rounds, lines, signal)
          } finally {
            await lines.closeAll()
          }
        },
      }
    },
  }
}
