import type { Principal } from '../../identity/principal.ts'
import { callerOf } from './rateLimits.ts'
import { createLocalSlots, type SlotCounter } from './localSlots.ts'
import { Problem } from '../response/problemCatalogue.ts'

/** Limits of concurrent responses per caller: event streams, and requests that wait for a position. */

const STREAMS_MAX = 20
const WAITING_MAX = 20
/** A rough value: a place becomes free when one of the caller's own responses ends. */
const RETRY_SECONDS = 5

export type ConcurrencyLimit = {
  /** Counts one more and resolves to the function that releases it. Throws Problem `rate_limited` beyond the limit. */
  readonly take: (principal: Principal) => Promise<() => void>
}

/** `counted` names the responses in the problem's detail. */
const createConcurrencyLimit = (slots: SlotCounter, max: number, counted: string): ConcurrencyLimit => ({
  take: async principal => {
    const release = await slots.take(`${counted}:${callerOf(principal)}`, max)
    if (release !== undefined) return release
    throw new Problem('rate_limited', {
      detail: `You have ${max} ${counted}, which is as many as a caller may have at once.`,
      afterSeconds: RETRY_SECONDS,
    })
  },
})

export type ConcurrencyLimits = { readonly streams: ConcurrencyLimit; readonly waiting: ConcurrencyLimit }

export const createConcurrencyLimits = (slots = createLocalSlots()): ConcurrencyLimits => ({
  streams: createConcurrencyLimit(slots, STREAMS_MAX, 'event streams open'),
  waiting: createConcurrencyLimit(slots, WAITING_MAX, 'requests waiting for a position'),
})
