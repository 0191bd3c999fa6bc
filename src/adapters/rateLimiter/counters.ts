import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { Counted, Database, RateCounter } from '../../ports.ts'
import { createTables } from '../../schema/tables.ts'
import { createSharedCounts, type SharedCounts, type Spend } from './sharedCounts.ts'
import { within } from '../../lib/time.ts'

/** Counters of rate limits. The library stores windows and counts; the HTTP layer compares them with the limits. */

type Limiter = RateLimiterMemory | RateLimiterPostgres

/** A limit that is never reached: the library only counts, and is given the window with each call. */
const UNBOUNDED = { points: Number.MAX_SAFE_INTEGER, duration: 60 }
const TABLE = 'rate_counters_v1'
const SHARED_MAX_MS = 500
const EXCEEDED_MAX = 10_000
const PAUSE_AFTER_FAILURE_MS = 5_000

const spend = async (limiter: Limiter, key: string, points: number, windowSeconds: number): Promise<Counted> => {
  const { consumedPoints, msBeforeNext } = await limiter
    .consume(key, points, { customDuration: windowSeconds })
    .catch((refused: unknown) => {
      if (refused instanceof RateLimiterRes) return refused
      throw refused
    })
  return { used: consumedPoints, resetMs: msBeforeNext }
}

export const createLocalCounter = (): RateCounter => {
  const limiter = new RateLimiterMemory(UNBOUNDED)
  return { count: (key, { windowSeconds }) => spend(limiter, key, 1, windowSeconds) }
}

type CounterRow = { readonly points: number; readonly expire: bigint }

/** The Postgres client that the library expects. It needs a number where this database returns a bigint. */
const clientOf = ({ sql }: Database) => ({
  query: async ({ text, values }: { text: string; values?: readonly unknown[] }) => {
    const rows = await sql<CounterRow>(text, values)
    return { rows: rows.map(({ points, expire }) => ({ points, expire: Number(expire) })), rowCount: rows.length }
  },
})

const withTimeout = <T>(work: Promise<T>): Promise<T> =>
  within(work, SHARED_MAX_MS, () => {
    throw new Error('Counting took too long.')
  })

/** The keys over their limit need no statement until the end of their window. An evicted one is counted again. */
const rememberExceeded = () => {
  const exceeded = new LRUCache<string, { used: number; untilMs: number }>({ max: EXCEEDED_MAX })
  return {
    remember: (key: string, limit: number, { used, resetMs }: Counted): void => {
      if (used > limit) exceeded.set(key, { used, untilMs: performance.now() + resetMs })
    },
    recall: (key: string): Counted | undefined => {
      const excess = exceeded.get(key)
      const resetMs = excess ? excess.untilMs - performance.now() : 0
      if (excess && resetMs > 0) return { used: excess.used, resetMs }
      exceeded.delete(key)
      return undefined
    },
  }
}

/** Counts in the database, or in this process for PAUSE_AFTER_FAILURE_MS after a failure of the database. */
const withFallback = (shared: Limiter, onFailure: (error: unknown) => void): Spend => {
  const local = new RateLimiterMemory(UNBOUNDED)
  let pausedUntilMs = 0
  return async (key, points, windowSeconds) => {
    if (performance.now() >= pausedUntilMs) {
      try {
        return await withTimeout(spend(shared, key, points, windowSeconds))
      } catch (error) {
        onFailure(error)
        pausedUntilMs = performance.now() + PAUSE_AFTER_FAILURE_MS
      }
    }
    return spend(local, key, points, windowSeconds)
  }
}

/** Counts in Postgres for all instances, alone while it does not answer. `close` before the database is closed. */
export const openSharedCounter = async (
  database: Database,
  onFailure: (error: unknown) => void,
): Promise<SharedCounts> => {
  await createTables(database, 'rateCounters')
  const storeClient = clientOf(database)
  const options = { storeClient, storeType: 'client', tableName: TABLE, tableCreated: true, ...UNBOUNDED }
  const shared = createSharedCounts(withFallback(new RateLimiterPostgres(options), onFailure))
  const exceeded = rememberExceeded()
  return {
    count: async (name, limit) => {
      // A fixed length for the column and for the memory of exceeded keys, since names can be of any length.
      const key = hash('sha256', name, 'base64url')
      const excess = exceeded.recall(key)
      if (excess) return excess
      const counted = await shared.count(key, limit)
      exceeded.remember(key, limit.requests, counted)
      return counted
    },
    close: shared.close,
  }
}
