import { LRUCache } from 'lru-cache'
import type { Account } from '../../fairness/account.ts'
import type { World } from '../../ports.ts'

/**
 * A caller that sends again before its `Retry-After` is over gets the next refusal only then. A refusal costs as much as a
 * small response: 1,800 clients who asked for one more event stream every second kept the event loop 93 % busy, and with
 * held refusals about 60 % (test/soak/attacks/eventStreams.ts).
 */

const HELD_MAX_MS = 5_000
const CALLERS_MAX = 10_000

export type Refusals = {
  /**
   * Resolves when the refusal may be sent, to the time in ms for which it was held: the first at once, those within the next
   * `afterMs` at its end.
   */
  readonly hold: (account: Account, afterMs: number, gone: AbortSignal) => Promise<number>
}

export const createRefusals = ({ monotonicMs, sleep }: Pick<World, 'monotonicMs' | 'sleep'>): Refusals => {
  const untilMs = new LRUCache<string, number>({ max: CALLERS_MAX })
  return {
    hold: async ({ tenant, caller }, afterMs, gone) => {
      const [key, nowMs] = [`${tenant} ${caller}`, monotonicMs()]
      const until = untilMs.get(key) ?? nowMs
      if (until > nowMs) await sleep(until - nowMs, gone)
      else untilMs.set(key, nowMs + Math.min(afterMs, HELD_MAX_MS))
      return monotonicMs() - nowMs
    },
  }
}
