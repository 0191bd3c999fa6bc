import type { World } from '../ports.ts'

/** Units of time, and the helpers that bound and repeat a wait. */

export const SECOND_MS = 1_000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** Settles as the work does, or after `limitMs` as `late` does, which returns or throws. */
export const within = <T, L>(work: Promise<T>, limitMs: number, late: () => L): Promise<T | L> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(new Promise<L>(settle => settle(late()))), limitMs)
    const settling =
      <V>(settle: (value: V) => void) =>
      (value: V): void => {
        clearTimeout(timer)
        settle(value)
      }
    work.then(settling(resolve), settling(reject))
  })

/** The present time, RFC 3339. */
export const timeNow = (world: Pick<World, 'now'>): string => new Date(world.now()).toISOString()

/** The day in UTC, RFC 3339 full-date. */
export const dayOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10)

/** Resolves after the time, or at once when the signal aborts. */
// The promise of node:timers rejects with an error and a stack when a wait is aborted, as most of them are here.
export const sleep = (timeMs: number, signal?: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, timeMs)
    signal?.addEventListener('abort', end)
  })

/** The pause before the next attempt: `minMs` after the first failure (`failures` 0), then twice as long each time. */
export const backoffMs = (failures: number, minMs: number, maxMs: number): number =>
  Math.min(maxMs, minMs * 2 ** failures)

/** A pause that grows, between half of it and the whole, so that those who failed together do not return together. */
export const jittered = (pauseMs: number, random = Math.random()): number => pauseMs * (0.5 + random / 2)
