import type { FactMessage, FactProducer, World } from '../ports.ts'
import { type EventReference, type Failure, reasonOf } from './deadLetters.ts'
import { isTransient } from './parkingRequests.ts'

/** The attempts to send a single fact. When the last one fails, the fact is parked (deliveryWithParking.ts). */

/**
 * These attempts are for a fact that is too large for its topic or cannot be made from its event. An error that passes by itself
 * (`isTransient`) is not counted: it is thrown at once, after the retries of the bus (PUBLISH_DEADLINE_MS in adapters/kafka/factBus.ts).
 */
const ATTEMPTS_MAX = 10
const ATTEMPT_PAUSE_MS = 50

/** A fact to send. `message` throws for an event that no fact can be made of. */
export type Outgoing = EventReference & { readonly message: () => FactMessage }

type RetryDependencies = { readonly bus: FactProducer; readonly world: Pick<World, 'sleep'> }

/** Sends the fact; returns the failure of the last attempt. */
export const publishWithRetries =
  ({ bus, world }: RetryDependencies) =>
  async (fact: Outgoing): Promise<Failure | undefined> => {
    for (let attempts = 1; ; attempts++) {
      try {
        await bus.publish([fact.message()])
        return undefined
      } catch (error) {
        if (isTransient(error)) throw error
        if (attempts === ATTEMPTS_MAX) return { reason: reasonOf(error), attempts }
        await world.sleep(ATTEMPT_PAUSE_MS)
      }
    }
  }
