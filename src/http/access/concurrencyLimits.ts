import type { Principal } from '../../identity/principal.ts'
import { callerOf } from './rateLimits.ts'
import { Problem } from '../response/problemCatalogue.ts'

/** Limits of concurrent responses per caller: event streams, and requests that wait for a position. */

const STREAMS_MAX = 20
const WAITING_MAX = 20
/** A rough value: a place becomes free when one of the caller's own responses ends. */
const RETRY_SECONDS = 5

export type ConcurrencyLimit = {
  /** Counts one more and returns the function that releases it. Throws Problem `rate_limited` beyond the limit. */
  readonly take: (principal: Principal) => () => void
}

/** `counted` names the responses in the problem's detail. */
export const createConcurrencyLimit = (max: number, counted: string): ConcurrencyLimit => {
  const byCaller = new Map<string, number>()
  return {
    take: principal => {
      const caller = callerOf(principal)
      const held = byCaller.get(caller) ?? 0
      if (held >= max)
        throw new Problem('rate_limited', {
          detail: `You have ${held} ${counted}, which is as many as a caller may have at once.`,
          afterSeconds: RETRY_SECONDS,
        })
      byCaller.set(caller, held + 1)
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        const rest = (byCaller.get(caller) ?? 1) - 1
        if (rest === 0) byCaller.delete(caller)
        else byCaller.set(caller, rest)
      }
    },
  }
}

export type ConcurrencyLimits = { readonly streams: ConcurrencyLimit; readonly waiting: ConcurrencyLimit }

export const createConcurrencyLimits = (): ConcurrencyLimits => ({
  streams: createConcurrencyLimit(STREAMS_MAX, 'event streams open'),
  waiting: createConcurrencyLimit(WAITING_MAX, 'requests waiting for a position'),
})
