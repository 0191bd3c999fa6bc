import { type SubscriptionDelivery, acquireDelivery } from '../../feeds/subscriptionCheckpoints.ts'
import { type OpenDelivery, openDelivery } from './delivery.ts'
import { isConfirmed } from './creatorConfirmation.ts'
import { announceDeadLetters } from './deadLetterTopics.ts'
import type { SubscriptionDependencies } from './dependencies.ts'
import { checkpointOf, provideTopics, removeTopics, withdrawRights } from './topicProvisioning.ts'
import { createTopicWork } from './topicWork.ts'
import { createPermissionMonitor, sendTo } from './permissionMonitor.ts'

/** Reconciles a subscription with its row: delivers its facts in the loop, and its topics and ACLs beside it. */

/** Whether the newest replay has delivered everything up to its end. */
const hasReplayed = (
  { replay, replays, position, replay_to, is_behind }: SubscriptionDelivery,
  projectedUpTo: bigint,
): boolean =>
  replay_to !== null &&
  replay === replays &&
  projectedUpTo >= replay_to &&
  (!is_behind || (position ?? -1n) >= replay_to)

const createOpenDeliveries = (dependencies: SubscriptionDependencies, epoch: bigint) => {
  const open = new Map<string, OpenDelivery>()
  const close = async (id: string): Promise<void> => {
    const delivery = open.get(id)
    open.delete(id)
    await delivery?.close()
  }
  return {
    of: async (subscription: SubscriptionDelivery): Promise<OpenDelivery> => {
      const existing = open.get(subscription.id)
      if (existing) return existing
      const checkpoint = await acquireDelivery(dependencies.database.sql, checkpointOf(subscription, epoch))
      const delivery = await openDelivery(dependencies, subscription, checkpoint)
      open.set(subscription.id, delivery)
      return delivery
    },
    close,
    closeAll: () => Promise.all([...open.keys()].map(close)),
  }
}

/** Work on the topics of a subscription, `deliver` if its facts may be sent, or `none`. */
type Due = (() => Promise<void>) | 'none' | 'deliver'

export type DeliveriesOptions = {
  /** The subscriptions whose topics are ensured before they are delivered again. */
  readonly failed: Set<string>
  /** Called when work on topics has ended, which the next reconciliation takes note of. */
  readonly onTopicWorkEnded: () => void
}

/** Long because its functions share the topic work, the permission checks and the failures of one run. */
export const createDeliveries = (
  dependencies: SubscriptionDependencies,
  epoch: bigint,
  { failed, onTopicWorkEnded }: DeliveriesOptions,
) => {
  const deliveries = createOpenDeliveries(dependencies, epoch)
  const permissionMonitor = createPermissionMonitor(dependencies)
  const topicWork = createTopicWork(onTopicWorkEnded)

  const mayDeliver = async (subscription: SubscriptionDelivery): Promise<boolean> =>
    subscription.state !== 'stopped' &&
    (await permissionMonitor.isAllowed(subscription)) &&
    (await isConfirmed(dependencies, subscription))

  const ensured = (subscription: SubscriptionDelivery, work: Promise<void>): Promise<void> =>
    work.then(() => void failed.delete(subscription.id))

  const dueFor = async (subscription: SubscriptionDelivery): Promise<Due> => {
    const { id, state, acl, topic_bytes } = subscription
    if (state === 'deleted') return () => ensured(subscription, removeTopics(dependencies, subscription))
    // The delivery is closed before this work begins, so no fact is sent that the principal can no longer read.
    if (!(await mayDeliver(subscription)))
      return acl === 'granted' ? () => withdrawRights(dependencies, subscription, epoch) : 'none'
    const isUnprotected = acl === 'not_enforced' && dependencies.needsAuthorizer === true
    if (acl === null || isUnprotected || Number(topic_bytes) !== dependencies.topicBytes || failed.has(id))
      return () => ensured(subscription, provideTopics(dependencies, subscription, epoch))
    return state === 'active' ? 'deliver' : 'none'
  }

  const deliver = async (subscription: SubscriptionDelivery, projectedUpTo: bigint): Promise<boolean> => {
    const { id, is_behind, replay, replays, has_unannounced } = subscription
    const delivery = await deliveries.of(subscription)
    if (hasReplayed(subscription, projectedUpTo))
      await sendTo(dependencies, subscription, { type: 'CompleteReplay', replay: replays })
    const isDue = is_behind || replay !== replays
    if (isDue) await delivery.deliver(subscription, projectedUpTo)
    const isAnnounced = has_unannounced && (await announceDeadLetters(dependencies, id))
    return isDue || isAnnounced
  }

  return {
    /** Must be called just before the rows of a round are read. */
    beforeRowsAreRead: topicWork.beforeRowsAreRead,
    /** Resolves to whether there may be more at once. Throws Unavailable, EpochSuperseded or BrokerAccessDenied. */
    reconcile: async (subscription: SubscriptionDelivery, projectedUpTo: bigint): Promise<boolean> => {
      const { id, state } = subscription
      if (topicWork.mayChangeRows(id)) return false
      const due = await dueFor(subscription)
      if (due === 'none' || due === 'deliver') topicWork.drop(id)
      if (due === 'deliver') return deliver(subscription, projectedUpTo)
      await deliveries.close(id)
      if (state === 'deleted') permissionMonitor.forget(id)
      if (due !== 'none') topicWork.want(subscription, due)
      return false
    },
    /** Closes the delivery. The topics are ensured again before it is reopened. */
    closeAfterFailure: async (id: string): Promise<void> => {
      failed.add(id)
      await deliveries.close(id)
    },
    /** The time of the monotonic clock at which the subscription has to be reconciled again, also if no row changes. */
    nextDueMs: (id: string): number => permissionMonitor.nextCheckMs(id) ?? Number.POSITIVE_INFINITY,
    closeAll: async (): Promise<void> => {
      await Promise.all([topicWork.stop(), deliveries.closeAll()])
    },
  }
}
export type Deliveries = ReturnType<typeof createDeliveries>
