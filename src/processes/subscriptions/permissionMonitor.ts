import type { SubscriptionId } from '../../../streams/ids.ts'
import type { SubscriptionCommand } from '../../../streams/subscription/index.ts'
import { subscriptionEntity } from '../../commands/entities.ts'
import { handle } from '../../commands/handle.ts'
import type { SubscriptionDelivery } from '../../feeds/subscriptionCheckpoints.ts'
import { Unavailable } from '../../ports.ts'
import { contextOf } from '../processManager.ts'
import type { SubscriptionDependencies } from './dependencies.ts'

/** Whether those that are delivered may still be, and the commands that follow from it. */

export const NAME = 'subscriptions'

/** A right that was taken away ends the delivery within 60 s (contract.md §9), and in practice within a few. */
const RECHECK_EVERY_MS = 1_500

/** In the name of whoever was the last to command it. */
export const sendTo = async (
  { ledger }: SubscriptionDependencies,
  { id: text }: SubscriptionDelivery,
  command: SubscriptionCommand,
): Promise<void> => {
  const id = text as SubscriptionId
  const newest = (await ledger.aggregates.history(subscriptionEntity, id)).at(-1)
  if (newest === undefined) throw new Error(`${id} has a row and no stream.`)
  const context = { ...contextOf(NAME, newest, ledger.world), commandId: `${NAME}/${newest.eventId}/${command.type}` }
  const sent = await handle(ledger, subscriptionEntity, id, { command, context })
  // Deleted meanwhile: then there is nothing left to command.
  if (!sent.ok && !('rejected' in sent && sent.rejected === 'resource_not_found'))
    throw new Error(`${id} did not take ${command.type}.`)
}

export type Watch = {
  /** Asked every few seconds; a no is followed by the event that stops the subscription. */
  readonly isAllowed: (line: SubscriptionDelivery) => Promise<boolean>
  readonly forget: (id: string) => void
}

export const createWatch = (parts: SubscriptionDependencies): Watch => {
  const checkedAtMs = new Map<string, number>()
  return {
    forget: id => void checkedAtMs.delete(id),
    isAllowed: async line => {
      const last = checkedAtMs.get(line.id)
      const now = parts.ledger.world.monotonicMs()
      if (last !== undefined && now - last < RECHECK_EVERY_MS) return true
      try {
        const allowance = await parts.isStillAllowed(line)
        if (allowance.allowed) return checkedAtMs.set(line.id, now).has(line.id)
        await sendTo(parts, line, { type: 'StopSubscription', reason: allowance.reason })
      } catch (error) {
        // What cannot be asked just now was allowed a moment ago; of what was never asked nothing is known.
        if (last !== undefined && error instanceof Unavailable) return true
        throw error
      }
      checkedAtMs.delete(line.id)
      return false
    },
  }
}
