import type { SubscriptionId } from '../../../streams/ids.ts'
import type { SubscriptionCommand } from '../../../streams/subscription/index.ts'
import { type KindOf, subscriptionEntity } from '../../commands/entities.ts'
import { type CommandRequest, handle } from '../../commands/commandHandler.ts'
import type { SubscriptionDelivery } from '../../feeds/subscriptionCheckpoints.ts'
import { Unavailable } from '../../ports.ts'
import { contextOf } from '../processManager.ts'
import type { SubscriptionDependencies } from './dependencies.ts'

export const NAME = 'subscriptions'

/** A suspension or a revoked scope must end the delivery within 5 s (`ledger tenants`). */
const RECHECK_EVERY_MS = 1_500

type IfMatch = CommandRequest<KindOf<typeof subscriptionEntity>>['ifMatch']

/** Sends a command in the name of the caller of the newest event; without an effect where `ifMatch` is false. */
export const sendTo = async (
  { ledger }: SubscriptionDependencies,
  { id: text }: SubscriptionDelivery,
  command: SubscriptionCommand,
  ifMatch?: IfMatch,
): Promise<void> => {
  const id = text as SubscriptionId
  const newest = await ledger.aggregates.newest(subscriptionEntity, id)
  if (newest === undefined) throw new Error(`${id} has a row and no stream.`)
  const context = { ...contextOf(NAME, newest, ledger.world), commandId: `${NAME}/${newest.eventId}/${command.type}` }
  const handled = await handle(ledger, subscriptionEntity, id, { command, context, ifMatch })
  // A subscription that was deleted meanwhile needs no command.
  if ('rejected' in handled && handled.rejected !== 'resource_not_found')
    throw new Error(`${id} refused ${command.type}.`)
}

/** Its holder may rightly resume it between the check and the command: then the next check decides. */
export const stop = (
  dependencies: SubscriptionDependencies,
  subscription: SubscriptionDelivery,
  reason: string,
): Promise<void> =>
  sendTo(
    dependencies,
    subscription,
    { type: 'StopSubscription', reason },
    row => row?.revision === subscription.revision,
  )

export const createPermissionMonitor = (dependencies: SubscriptionDependencies) => {
  const checkedAtMs = new Map<string, number>()
  return {
    /** The time of the next check by the monotonic clock; undefined before the first one. */
    nextCheckMs: (id: string): number | undefined => {
      const last = checkedAtMs.get(id)
      return last === undefined ? undefined : last + RECHECK_EVERY_MS
    },
    forget: (id: string): void => void checkedAtMs.delete(id),
    /** Checked every RECHECK_EVERY_MS. If it resolves to false, the subscription was stopped, or has changed meanwhile. */
    isAllowed: async (subscription: SubscriptionDelivery): Promise<boolean> => {
      const last = checkedAtMs.get(subscription.id)
      const now = dependencies.ledger.world.monotonicMs()
      if (last !== undefined && now - last < RECHECK_EVERY_MS) return true
      try {
        const allowance = await dependencies.isStillAllowed(subscription)
        if (allowance.allowed) {
          checkedAtMs.set(subscription.id, now)
          return true
        }
        await stop(dependencies, subscription, allowance.reason)
      } catch (error) {
        // An owner who had the permission at the last check keeps it while the check is unavailable.
        if (last !== undefined && error instanceof Unavailable) return true
        throw error
      }
      checkedAtMs.delete(subscription.id)
      return false
    },
  }
}
