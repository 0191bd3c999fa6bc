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

/** The pause before the next attempt: `minMs` after the first failure (`failures` 0), then twice as long each time. */
export const backoffMs = (failures: number, minMs: number, maxMs: number): number =>
  Math.min(maxMs, minMs * 2 ** failures)
