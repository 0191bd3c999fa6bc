import { createLocalCounter } from '../adapters/rateLimiter/counters.ts'
import { createLocalSlots, type SlotCounter } from '../http/admission/localSlots.ts'
import type { RateCounter } from '../ports.ts'
import type { Channel } from '../childProcesses/channel.ts'
import type { LimitOperations } from './sharedLimits.ts'
import { within } from '../lib/time.ts'

/** The primary counts. While it does not answer, this process counts alone: a limit is no reason to refuse a request. */

const ANSWER_MAX_MS = 500

type Primary = Pick<Channel<LimitOperations>, 'call'>

const answered = <T>(work: Promise<T>): Promise<T> =>
  within(work, ANSWER_MAX_MS, () => {
    throw new Error('The primary process did not answer in time.')
  })

const createCounter = (primary: Primary, onFailure: (error: unknown) => void): RateCounter => {
  const alone = createLocalCounter()
  return {
    count: async (key, limit) => {
      try {
        return await answered(primary.call('count', key, limit))
      } catch (error) {
        onFailure(error)
        return alone.count(key, limit)
      }
    },
  }
}

const createSlots = (primary: Primary, onFailure: (error: unknown) => void): SlotCounter => {
  const alone = createLocalSlots()
  const free = (key: string): void => void primary.call('freeSlot', key).catch(() => undefined)
  return {
    take: async (key, max) => {
      const taking = primary.call('takeSlot', key, max)
      try {
        if (!(await answered(taking))) return undefined
        let isHeld = true
        return () => {
          if (isHeld) free(key)
          isHeld = false
        }
      } catch (error) {
        onFailure(error)
        // The answer may still come: a slot that was taken too late is released.
        void taking.then(isTaken => isTaken && free(key)).catch(() => undefined)
        return alone.take(key, max)
      }
    },
  }
}

export const createChildLimits = (
  primary: Primary,
  onFailure: (error: unknown) => void,
): { readonly counter: RateCounter; readonly slots: SlotCounter } => ({
  counter: createCounter(primary, onFailure),
  slots: createSlots(primary, onFailure),
})
