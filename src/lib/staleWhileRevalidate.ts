import { workForAll } from '../fairness/currentAccount.ts'

/**
 * A value that is read again while it is in use (stale-while-revalidate, RFC 5861): the issuer's keys, revoked tokens,
 * the status of tenants.
 *
 * The value is *fresh* up to `refreshAfterMs` after its last good reading began, and is used as it is. Then it is
 * *aging*: the next use begins a reading, but does not wait for it. From `maxAgeMs` on it is *stale*: uses wait for
 * that reading. When the last reading failed, uses do not wait until the value is `outageMaxMs` old. Readings never
 * overlap, and after a failed one the next begins `retryAfterMs` later at the earliest, so a dead dependency costs
 * no caller a timeout twice.
 */

export type RevalidationTimes = {
  readonly refreshAfterMs: number
  readonly maxAgeMs: number
  readonly outageMaxMs: number
  readonly retryAfterMs: number
}

export type RevalidatedOptions<T> = RevalidationTimes & {
  readonly read: () => Promise<T>
  /** Milliseconds from any origin that never jump: a wall clock set back must not keep an old value alive. */
  readonly monotonicNow: () => number
  /** Called with the error of each failed reading. What it throws, the waiting uses reject with. */
  readonly onFailure: (error: unknown) => void
}

export type Revalidated<T> = {
  /** The last value that was read; undefined before the first. */
  readonly value: () => T | undefined
  /** Resolves once the value may be used; undefined when it already may, which is nearly always. */
  readonly ready: () => Promise<void> | undefined
  /** Joins the reading in flight or begins one. */
  readonly read: () => Promise<void>
  readonly underWay: () => Promise<void> | undefined
  readonly begun: () => number
  /** The number of the last good reading, counted as `begun` counts. */
  readonly lastGood: () => number
  /** Since the last good reading began: later changes may be missing in the value. */
  readonly ageMs: () => number
  readonly isFailing: () => boolean
}

/** Long because its functions share the state of the readings. */
export const createRevalidated = <T>(options: RevalidatedOptions<T>): Revalidated<T> => {
  const { monotonicNow, onFailure, refreshAfterMs, maxAgeMs, outageMaxMs, retryAfterMs } = options
  let value: T | undefined
  let readAtMs = Number.NEGATIVE_INFINITY
  let attemptedAtMs = Number.NEGATIVE_INFINITY
  let begun = 0
  let lastGood = 0
  let isFailing = false
  let underWay: Promise<void> | undefined

  const readOnce = async (): Promise<void> => {
    const startedAtMs = monotonicNow()
    attemptedAtMs = startedAtMs
    begun += 1
    try {
      value = await workForAll(options.read)
      readAtMs = startedAtMs
      lastGood = begun
      isFailing = false
    } catch (error) {
      isFailing = true
      onFailure(error)
    }
  }

  const read = (): Promise<void> => {
    underWay ??= readOnce().finally(() => {
      underWay = undefined
    })
    return underWay
  }
  const ageMs = (): number => monotonicNow() - readAtMs

  return {
    value: () => value,
    ready: () => {
      if (ageMs() < refreshAfterMs) return undefined
      const isPausing = isFailing && monotonicNow() - attemptedAtMs < retryAfterMs
      const isUsable = ageMs() < maxAgeMs || (isFailing && ageMs() <= outageMaxMs)
      const reading = isPausing ? undefined : read()
      if (!isUsable) return reading
      reading?.catch(() => undefined)
      return undefined
    },
    read,
    underWay: () => underWay,
    begun: () => begun,
    lastGood: () => lastGood,
    ageMs,
    isFailing: () => isFailing,
  }
}
