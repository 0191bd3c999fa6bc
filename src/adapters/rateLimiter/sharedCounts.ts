import { LRUCache } from 'lru-cache'
import { workForAll } from '../../fairness/currentAccount.ts'
import type { Counted, RateLimit } from '../../ports.ts'

/**
 * The counts that instances share in a database, with few statements for a busy caller.
 *
 * From half of a limit on, each request waits for the statement that counts it, so the limit is exact. Below that
 * nothing depends on the exact number: a request is counted in memory, and the database has it within a tenth of a second.
 * A limit could be exceeded only if its second half were used up in that time, and then by AHEAD_SHARE for each further
 * instance.
 */

/** Adds the points to a key in the database. Resolves to its count with them, and the time until its window ends. */
export type Spend = (key: string, points: number, windowSeconds: number) => Promise<Counted>

/** `later` returns the function that cancels the work. */
type CountsClock = {
  readonly nowMs: () => number
  readonly later: (ms: number, work: () => void) => () => void
}

const realClock: CountsClock = {
  nowMs: () => performance.now(),
  later: (ms, work) => {
    const timer = setTimeout(work, ms).unref()
    return () => clearTimeout(timer)
  },
}

export type SharedCounts = {
  readonly count: (key: string, limit: RateLimit) => Promise<Counted>
  /** Counts in the database what is counted in memory alone. */
  readonly close: () => Promise<void>
}

/** The share of a limit below which a key is far from it. */
const FAR_SHARE = 0.5
/** The share of a limit that an instance may count in memory alone. Limits below 50 are always exact. */
const AHEAD_SHARE = 0.02
/** The time after which a request that is counted in memory is counted in the database. */
const SPEND_AFTER_MS = 100
/** A count that is older lacks too much of what other instances have counted. */
const COUNT_AGE_MAX_MS = 250
/** The least recently used key beyond these is forgotten when its points are in the database. */
const KEYS_MAX = 10_000

type Waiting = (counted: Counted) => void

/** The count of one key, as far as this instance knows it. */
class SharedCount {
  private readonly key: string
  private readonly spend: Spend
  private readonly clock: CountsClock
  private windowSeconds = 0
  private known: Counted = { used: 0, resetMs: 0 }
  private knownAtMs = Number.NEGATIVE_INFINITY
  /** Points of answered requests that no statement has counted yet, and all those of the statement that is in flight. */
  private ahead = 0
  private sent = 0
  private waiting: Waiting[] = []
  private cancelTimer: (() => void) | undefined
  private isDue = false
  private spending: Promise<void> | undefined

  constructor(key: string, spend: Spend, clock: CountsClock) {
    this.key = key
    this.spend = spend
    this.clock = clock
  }

  count({ requests, windowSeconds }: RateLimit): Counted | Promise<Counted> {
    this.windowSeconds = windowSeconds
    const ageMs = this.clock.nowMs() - this.knownAtMs
    const uncounted = this.sent + this.ahead
    const used = this.known.used + uncounted + 1
    const isFar = used <= requests * FAR_SHARE && uncounted < Math.floor(requests * AHEAD_SHARE)
    if (!isFar || ageMs >= Math.min(COUNT_AGE_MAX_MS, this.known.resetMs)) return this.exactly()
    this.ahead += 1
    this.cancelTimer ??= this.clock.later(SPEND_AFTER_MS, () => void this.spendAll())
    return { used, resetMs: this.known.resetMs - ageMs }
  }

  /** Requests that come while a statement is in flight are counted together by the next one. */
  private exactly(): Promise<Counted> {
    return new Promise(resolve => {
      this.waiting.push(resolve)
      void this.spendAll()
    })
  }

  /** Resolves when the database has all points. */
  spendAll(): Promise<void> {
    this.cancelTimer?.()
    this.cancelTimer = undefined
    this.isDue = true
    this.spending ??= workForAll(() => this.spendWhileDue()).finally(() => {
      this.spending = undefined
      // A request may have come since the last look at `isDue`.
      return this.isDue ? this.spendAll() : undefined
    })
    return this.spending
  }

  private async spendWhileDue(): Promise<void> {
    while (this.isDue) {
      this.isDue = false
      const batch = this.waiting
      this.waiting = []
      this.sent = this.ahead + batch.length
      this.ahead = 0
      if (this.sent > 0) await this.spendSent(batch)
    }
  }

  private async spendSent(batch: readonly Waiting[]): Promise<void> {
    const sentAtMs = this.clock.nowMs()
    const { used, resetMs } = await this.spend(this.key, this.sent, this.windowSeconds)
    this.sent = 0
    this.known = { used, resetMs }
    this.knownAtMs = sentAtMs
    const before = used - batch.length
    for (const [index, resolve] of batch.entries()) resolve({ used: before + index + 1, resetMs })
  }
}

/** `spend` does not reject. */
export const createSharedCounts = (spend: Spend, clock: CountsClock = realClock): SharedCounts => {
  const counts = new LRUCache<string, SharedCount>({ max: KEYS_MAX, dispose: count => void count.spendAll() })
  const countOf = (key: string): SharedCount => {
    const count = counts.get(key)
    if (count !== undefined) return count
    const added = new SharedCount(key, spend, clock)
    counts.set(key, added)
    return added
  }
  return {
    count: async (key, limit) => countOf(key).count(limit),
    close: async () => {
      await Promise.all(Array.from(counts.values(), count => count.spendAll()))
    },
  }
}
