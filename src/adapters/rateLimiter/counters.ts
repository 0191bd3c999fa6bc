import { hash } from 'node:crypto'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { Counted, Database, RateCounter } from '../../ports.ts'

/** The counters of rate limits: the library keeps windows and counts, the boundary decides what is too much. */

type Limiter = RateLimiterMemory | RateLimiterPostgres

/** More than any window will ever have: the library is only ever asked to count, and told the window each time. */
const UNBOUNDED = { points: Number.MAX_SAFE_INTEGER, duration: 60 }
const TABLE = 'rate_counters_v1'
/** Counts are worth little after a crash, so that they need not wait for the disk. */
const CREATE_TABLE = `create unlogged table if not exists ${TABLE}
  (key varchar(255) primary key, points integer not null default 0, expire bigint)`
/** Any two processes that start at once agree on who creates the table by this number. */
const TABLE_LOCK = 5_170_202
const SHARED_MAX_MS = 500
const EXCEEDED_MAX = 10_000
/** After a failure the database is left alone for so long. */
const REST_MS = 5_000

const spend = async (limiter: Limiter, key: string, points: number, windowSeconds: number): Promise<Counted> => {
  const { consumedPoints, msBeforeNext } = await limiter
    .consume(key, points, { customDuration: windowSeconds })
    .catch((refused: unknown) => {
      if (refused instanceof RateLimiterRes) return refused
      throw refused
    })
  return { used: consumedPoints, resetMs: msBeforeNext }
}

/** Counts in this process alone. */
export const createLocalCounter = (): RateCounter => {
  const limiter = new RateLimiterMemory(UNBOUNDED)
  return { count: (key, { windowSeconds }) => spend(limiter, key, 1, windowSeconds) }
}

type CounterRow = { readonly points: number; readonly expire: bigint }

/** What the library needs of a client of Postgres. It reckons with numbers, our database answers with a bigint. */
const clientOf = ({ sql }: Database) => ({
  query: async ({ text, values }: { text: string; values?: readonly unknown[] }) => {
    const rows = await sql<CounterRow>(text, values)
    return { rows: rows.map(({ points, expire }) => ({ points, expire: Number(expire) })), rowCount: rows.length }
  },
})

const withTimeout = <T>(work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('Counting took too long.')), SHARED_MAX_MS)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })

/** Of the keys that have had more than their limit, when they are let in again: nothing new can be said until then. */
const rememberExceeded = () => {
  const exceeded = new Map<string, { used: number; untilMs: number }>()
  return {
    remember: (key: string, limit: number, { used, resetMs }: Counted): void => {
      if (used <= limit) return
      if (exceeded.size >= EXCEEDED_MAX) exceeded.clear()
      exceeded.set(key, { used, untilMs: performance.now() + resetMs })
    },
    recall: (key: string): Counted | undefined => {
      const known = exceeded.get(key)
      const resetMs = known ? known.untilMs - performance.now() : 0
      if (known && resetMs > 0) return { used: known.used, resetMs }
      exceeded.delete(key)
      return undefined
    },
  }
}

/**
 * Counts for all instances together, in Postgres. Requests of one key that come while its last statement is under way
 * share the next: a busy caller costs a statement for many requests, and each still gets a number of its own. While the
 * database does not answer, each instance counts for itself: a limit is no reason to refuse a payment.
 */
export const openSharedCounter = async (
  database: Database,
  onFailure: (error: unknown) => void,
): Promise<RateCounter> => {
  await database.transaction(async sql => {
    await sql('select pg_advisory_xact_lock($1)', [TABLE_LOCK])
    await sql(CREATE_TABLE)
  })
  const storeClient = clientOf(database)
  const options = { storeClient, storeType: 'client', tableName: TABLE, tableCreated: true, ...UNBOUNDED }
  const shared = new RateLimiterPostgres(options)
  const alone = new RateLimiterMemory(UNBOUNDED)
  let restingUntilMs = 0

  const spendAnywhere = async (key: string, points: number, windowSeconds: number): Promise<Counted> => {
    if (performance.now() >= restingUntilMs) {
      try {
        return await withTimeout(spend(shared, key, points, windowSeconds))
      } catch (error) {
        onFailure(error)
        restingUntilMs = performance.now() + REST_MS
      }
    }
    return spend(alone, key, points, windowSeconds)
  }

  const waiting = new Map<string, ((counted: Counted) => void)[]>()
  const drain = async (key: string, windowSeconds: number): Promise<void> => {
    for (let batch = waiting.get(key); batch && batch.length > 0; batch = waiting.get(key)) {
      waiting.set(key, [])
      const { used, resetMs } = await spendAnywhere(key, batch.length, windowSeconds)
      const before = used - batch.length
      for (const [index, resolve] of batch.entries()) resolve({ used: before + index + 1, resetMs })
    }
    waiting.delete(key)
  }

  const exceeded = rememberExceeded()

  const countAnew = (key: string, windowSeconds: number): Promise<Counted> =>
    new Promise(resolve => {
      const others = waiting.get(key)
      if (others) others.push(resolve)
      else {
        waiting.set(key, [resolve])
        void drain(key, windowSeconds)
      }
    })

  return {
    count: async (name, { requests, windowSeconds }) => {
      // Names are as long as their issuer makes them; a column, and the memory of those exceeded, are not.
      const key = hash('sha256', name, 'base64url')
      const known = exceeded.recall(key)
      if (known) return known
      const counted = await countAnew(key, windowSeconds)
      exceeded.remember(key, requests, counted)
      return counted
    },
  }
}
