import { factsAfter, type FeedPlace, lastPlace, type TailFact } from '../../../projections/facts/queries.ts'
import type { Query } from '../../../projections/listQueries.ts'
import type { Account } from '../../fairness/account.ts'
import { workFor, workForAll } from '../../fairness/currentAccount.ts'
import { createLoopTime, type RunInTurn } from '../../fairness/loopTime.ts'
import { HELD_UNTIL_DONE, Turns } from '../../fairness/turns.ts'
import { checkpointPositions } from '../../feeds/checkpoints.ts'
import { type Database, type Row, Unavailable, type World } from '../../ports.ts'
import { createCaughtUpStreams, type LiveQueue } from './caughtUpStreams.ts'

/** One poll of positions and new facts for all waiting requests and followed event streams of this process. */

const WAITING_POLL_MS = 20
const FOLLOWING_POLL_MS = 100
const FAILED_POLL_MS = 250
/** The facts of one poll; if there are more, the next poll follows at once. */
const FACTS_MAX = 500

export type Tail = {
  /** Resolves when the read model has reached the position, or when the time is over. */
  readonly waitUntilReached: (name: string, position: bigint, waitMs: number) => Promise<void>
  /** A queue of the facts of the account's tenant that become visible from now on. */
  readonly follow: (account: Account) => Promise<LiveQueue>
  /** Runs a query of an event stream, by turns of the tenants. Throws TurnRefused if the signal aborts before. */
  readonly read: <R extends Row>(query: Query<R>, reader: Reader) => Promise<R[]>
  /** Runs a short piece of an event stream's work when it is the turn of its account. */
  readonly inTurn: RunInTurn
}

export type Reader = { readonly account: Account; readonly signal: AbortSignal }

type Waiting = {
  readonly name: string
  readonly position: bigint
  readonly untilMs: number
  readonly resolve: () => void
}

export type TailDependencies = {
  readonly database: Pick<Database, 'sql'>
  /** The connections of the database: one is for the poll, and event streams share the others to read history. */
  readonly connections: number
  readonly world: World
}

const createWaiting = (world: World) => {
  const waiting = new Set<Waiting>()
  return {
    count: () => waiting.size,
    add: (name: string, position: bigint, waitMs: number): Promise<void> =>
      new Promise(resolve => {
        waiting.add({ name, position, untilMs: world.monotonicMs() + waitMs, resolve })
      }),
    resolveReached: (reached: ReadonlyMap<string, bigint>): void => {
      for (const waiter of waiting) {
        if ((reached.get(waiter.name) ?? -1n) < waiter.position && world.monotonicMs() < waiter.untilMs) continue
        waiting.delete(waiter)
        waiter.resolve()
      }
    },
  }
}

/** The place up to which the followers have facts; at first that of the newest fact when they began. */
const createPlace = ({ sql }: TailDependencies['database']) => {
  let place: FeedPlace | undefined
  let reading: Promise<void> | undefined
  const begin = async (): Promise<void> => {
    const [last] = await sql<FeedPlace>(lastPlace.text, lastPlace.values)
    place = last ?? { arrival: -1n, seq: 0n }
  }
  return {
    get: () => place,
    move: (to: FeedPlace): void => {
      place = to
    },
    forget: (): void => {
      place = undefined
    },
    /** Sets the place to the newest fact. The last follower may leave meanwhile; then the place is unset again. */
    provide: async (): Promise<void> => {
      reading ??= workForAll(begin).finally(() => {
        reading = undefined
      })
      await reading
    },
  }
}

/** A stream waits for its history as long as it takes: it has no deadline, and the number of streams is limited. */
const createReads = ({ database, connections, world }: TailDependencies): Tail['read'] => {
  const reads = new Turns({ ...HELD_UNTIL_DONE, turns: () => connections - 1 }, world)
  return async ({ text, values }, { account, signal }) => {
    const end = await reads.enter(account, signal)
    try {
      return await workFor(account, () => database.sql(text, values))
    } finally {
      end()
    }
  }
}

/** Long because its functions share the state of one poll loop. */
export const createTail = ({ database, connections, world }: TailDependencies): Tail => {
  const waiting = createWaiting(world)
  const place = createPlace(database)
  const inTurn = createLoopTime(world)
  const followers = createCaughtUpStreams({ world, inTurn, onLastClosed: place.forget })
  let wake = new AbortController()
  let isPolling = false

  /** True if there are more facts than one poll reads. */
  const takeFacts = async (after: FeedPlace): Promise<boolean> => {
    const { text, values } = factsAfter(after, FACTS_MAX)
    const rows = await database.sql<TailFact>(text, values)
    const last = rows.at(-1)
    // All followers may have left during the query, and new ones come, which begin at another place.
    if (last === undefined || place.get() !== after) return false
    followers.enqueue(rows)
    place.move(last)
    return rows.length === FACTS_MAX
  }

  const poll = async (): Promise<boolean> => {
    waiting.resolveReached(waiting.count() > 0 ? await checkpointPositions(database.sql) : new Map())
    const after = place.get()
    return followers.count() > 0 && after !== undefined && takeFacts(after)
  }

  const pause = async (timeMs: number): Promise<void> => {
    wake = new AbortController()
    await world.sleep(timeMs, wake.signal)
  }

  const pollUntilIdle = async (): Promise<void> => {
    while (waiting.count() + followers.count() > 0)
      try {
        if (!(await poll())) await pause(waiting.count() > 0 ? WAITING_POLL_MS : FOLLOWING_POLL_MS)
      } catch (error) {
        // Requests still end when their wait is over. After an error other than an outage, each stream reads for
        // itself, and ends with the error.
        waiting.resolveReached(new Map())
        if (!(error instanceof Unavailable)) followers.markAllBehind()
        await pause(FAILED_POLL_MS)
      }
    isPolling = false
  }

  const begin = (): void => {
    wake.abort()
    if (isPolling) return
    isPolling = true
    void workForAll(pollUntilIdle)
  }

  return {
    waitUntilReached: async (name, position, waitMs) => {
      const reached = waiting.add(name, position, waitMs)
      begin()
      await reached
    },
    follow: async account => {
      while (place.get() === undefined) await place.provide()
      // No await between the check and this line, so the follower misses no fact after the place.
      const followed = followers.add(account)
      begin()
      return followed
    },
    read: createReads({ database, connections, world }),
    inTurn,
  }
}
