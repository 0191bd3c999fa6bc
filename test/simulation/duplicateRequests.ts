import { type EventStore, type FactBus, Unavailable } from '../../src/ports.ts'
import type { Random } from './random.ts'
import type { Timeline } from './timeline.ts'

/**
 * Requests that arrive a second time, later and after others, because a proxy or a driver resends them by itself. An append that
 * was certainly refused is not resent, because its caller knows that it has no effect. A publication may be resent in any case,
 * because consumers expect redeliveries.
 */
export type DuplicateRequests = {
  /** Sets the probability that an append or a publication is resent. */
  readonly setChance: (chance: number) => void
  readonly count: () => number
  readonly store: (store: EventStore) => EventStore
  readonly bus: (bus: FactBus) => FactBus
}

const DELAY_MAX_MS = 2_000

const isWithoutEffect = (error: unknown): boolean => error instanceof Unavailable && error.effect === 'none'

export const createDuplicateRequests = ({
  timeline,
  random,
}: {
  readonly timeline: Timeline
  readonly random: Random
}) => {
  let chance = 0
  let count = 0
  const again = (send: () => Promise<unknown>): void => {
    if (chance === 0 || !random.chance(chance)) return
    count += 1
    // No process waits for the answer to the second request.
    timeline.after(random.next() * DELAY_MAX_MS, () => void send().catch(() => undefined))
  }
  const duplicates: DuplicateRequests = {
    setChance: to => {
      chance = to
    },
    count: () => count,
    store: store => ({
      ...store,
      append: async (stream, events, expected) => {
        const send = () => store.append(stream, events, expected)
        const appended = await send().catch((error: unknown) => {
          if (!isWithoutEffect(error)) again(send)
          throw error
        })
        if (appended.ok) again(send)
        return appended
      },
    }),
    bus: bus => ({
      ...bus,
      publish: messages => {
        again(() => bus.publish(messages))
        return bus.publish(messages)
      },
    }),
  }
  return duplicates
}
