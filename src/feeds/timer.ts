import type { World } from '../ports.ts'

/** Wakes a work loop instead of polling: whoever adds work sets the time at which it is due. */

/** Bounds the delay of work whose time was not set. */
export const WAIT_MAX_MS = 30_000

export type Timer = {
  /** The present wait, or the next one, ends at this time of the monotonic clock or earlier. */
  readonly setAt: (timeMs: number) => void
  /**
   * Resolves at the earliest time that was set, after `minMs` and within WAIT_MAX_MS; at once when the signal aborts.
   * All times are forgotten then.
   */
  readonly wait: (signal: AbortSignal, minMs: number) => Promise<void>
}

/** The time to set for work that is due already. */
export const AT_ONCE_MS = 0

export const createTimer = (world: Pick<World, 'monotonicMs' | 'sleep'>): Timer => {
  let dueMs = Number.POSITIVE_INFINITY
  let earlier = new AbortController()
  return {
    setAt: timeMs => {
      if (timeMs >= dueMs) return
      dueMs = timeMs
      earlier.abort()
    },
    wait: async (signal, minMs) => {
      const lastMs = world.monotonicMs() + WAIT_MAX_MS
      if (minMs > 0) await world.sleep(minMs, signal)
      for (;;) {
        const leftMs = Math.min(dueMs, lastMs) - world.monotonicMs()
        if (leftMs <= 0 || signal.aborted) break
        earlier = new AbortController()
        await world.sleep(Math.ceil(leftMs), AbortSignal.any([signal, earlier.signal]))
      }
      dueMs = Number.POSITIVE_INFINITY
    },
  }
}
