import type { SubscriptionId } from '../../../streams/ids.ts'
import { subscriptionEntity } from '../../commands/entities.ts'
import { confirmByMs, noteCreator } from '../../commands/subscriptions/confirmation.ts'
import { dayOf } from '../../lib/time.ts'
import type { SubscriptionDelivery } from '../../feeds/subscriptionCheckpoints.ts'
import type { SubscriptionDependencies } from './dependencies.ts'
import { stop } from './permissionMonitor.ts'

/** Stops subscriptions whose creator has not been seen with a valid credential for the confirmation period. */

/** The read model does not have the creator's client; the first event does. */
const noteCreatorOf = async ({ database, ledger }: SubscriptionDependencies, id: SubscriptionId): Promise<void> => {
  const created = await ledger.aggregates.first(subscriptionEntity, id)
  if (created === undefined) throw new Error(`${id} has a row and no stream.`)
  await noteCreator(database.sql, id, created.metadata, dayOf(ledger.world.now()))
}

/** If it resolves to false, the subscription was stopped, or has changed meanwhile. */
export const isConfirmed = async (
  dependencies: SubscriptionDependencies,
  subscription: SubscriptionDelivery,
): Promise<boolean> => {
  const { id, seen_on } = subscription
  if (seen_on === null) {
    await noteCreatorOf(dependencies, id as SubscriptionId)
    return true
  }
  if (dependencies.ledger.world.now() < confirmByMs(seen_on, dependencies.confirmationMs)) return true
  await stop(dependencies, subscription, 'creator_not_seen')
  return false
}
