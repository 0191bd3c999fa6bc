import { LRUCache } from 'lru-cache'
import type { Account } from '../../fairness/account.ts'
import type { World } from '../../ports.ts'

/**
 * A caller that sends again before its `Retry-After` is over gets the next refusal only then. A refusal costs as much as a
 * small response: 1,800 clients who asked for one more event stream every second kept the event loop 93 % busy, and with
 * held refusals about 60 % (test/soak/attacks/eventStreams.ts). Those of a tenant are sent one by one, because clients
 * who are answered together also ask again together.
 */

const HELD_MAX_MS = 5_000
const APART_MS = 10
const APART_MAX = 500
const CALLERS_MAX = 10_000

export type Refusals = {
  /**
   * Resolves when the refusal may be sent, to the time in ms for which it was held: the first at once, those within the next
   * `afterMs` at its end, each a moment after the one before.
   */
  readonly hold: (account: Account, afterMs: number, gone: AbortSignal) => Promise<number>
}

export const createRefusals = ({ monotonicMs, sleep }: Pick<World, 'monotonicMs' | 'sleep'>): Refusals => {
  const untilMs = new LRUCache<string, number>({ max: CALLERS_MAX })
  const heldOf = new Map<string, number>()
  const count = (tenant: string, change: 1 | -1): number => {
    const held = (heldOf.get(tenant) ?? 0) + change
    if (held === 0) heldOf.delete(tenant)
    else heldOf.set(tenant, held)
    return held
  }
  return {
    hold: async ({ tenant, caller }, afterMs, gone) => {
      const [key, nowMs] = [`${tenant} ${caller}`, monotonicMs()]
      const until = untilMs.get(key) ?? nowMs
      if (until <= nowMs) {
        untilMs.set(key, nowMs + Math.min(afterMs, HELD_MAX_MS))
        return 0
      }
      const before = count(tenant, 1) - 1
      await sleep(until - nowMs + (before % APART_MAX) * APART_MS, gone)
      count(tenant, -1)
      return monotonicMs() - nowMs
    },
  }
}
