import { createLocalCounter } from '../adapters/rateLimiter/counters.ts'
import { createLocalSlots, type SlotCounter } from '../http/access/localSlots.ts'
import { type Backlogs, createBacklogs } from '../http/server/backlogs.ts'
import type { RateCounter, World } from '../ports.ts'
import type { Channel } from './channel.ts'
import type { LimitOperations } from './sharedLimits.ts'

/**
 * The limits in an API process, which the primary counts. While the primary does not answer, this process counts alone,
 * since a limit is no reason to refuse a request.
 */

const ANSWER_MAX_MS = 500

type Primary = Pick<Channel<LimitOperations>, 'call'>

const within = <T>(work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The primary process did not answer in time.')), ANSWER_MAX_MS)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })

const createCounter = (primary: Primary, onFailure: (error: unknown) => void): RateCounter => {
  const alone = createLocalCounter()
  return {
    count: async (key, limit) => {
      try {
        return await within(primary.call('count', key, limit))
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
        if (!(await within(taking))) return undefined
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

/**
 * A request is paced by the backlog in this process, without a wait for the primary. Each request is reported to the
 * primary, whose answer adds the requests of the siblings. The answer is late by one exchange of messages, which is
 * little beside the half second of requests that passes without delay.
 */
export const createSharedBacklogs = (primary: Primary, clock: Pick<World, 'monotonicMs'>): Backlogs => {
  const local = createBacklogs(clock)
  /** Requests that the primary has not answered yet, by account. */
  const unanswered = new Map<string, number>()
  const answered = (account: string): number => {
    const rest = (unanswered.get(account) ?? 1) - 1
    if (rest === 0) unanswered.delete(account)
    else unanswered.set(account, rest)
    return rest
  }
  const report = async (account: string, everyMs: number, maxMs: number): Promise<void> => {
    unanswered.set(account, (unanswered.get(account) ?? 0) + 1)
    const backlogMs = await primary.call('pace', account, everyMs, maxMs).catch(() => undefined)
    const rest = answered(account)
    if (backlogMs !== undefined) local.set(account, Math.min(backlogMs + rest * everyMs, maxMs))
  }
  const add: Backlogs['add'] = (account, everyMs, maxMs) => {
    void report(account, everyMs, maxMs)
    return local.add(account, everyMs, maxMs)
  }
  return { add, of: local.of, largest: local.largest }
}

export const createChildLimits = (
  primary: Primary,
  clock: Pick<World, 'monotonicMs'>,
  onFailure: (error: unknown) => void,
): { readonly counter: RateCounter; readonly slots: SlotCounter; readonly backlogs: Backlogs } => ({
  counter: createCounter(primary, onFailure),
  slots: createSlots(primary, onFailure),
  backlogs: createSharedBacklogs(primary, clock),
})
