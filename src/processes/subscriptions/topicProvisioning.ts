import { topicNamesOf } from '../../commands/subscriptions/topicNames.ts'
import {
  type DeliveryCheckpoint,
  removeDelivery,
  type SubscriptionDelivery,
  noteAcl,
  noteTopics,
  acquireDelivery,
} from '../../feeds/subscriptionCheckpoints.ts'
import { TOPIC_RETENTION_MS } from '../../settings/retention.ts'
import type { SubscriptionDependencies } from './dependencies.ts'

/** Few, for the facts of one tenant. The number must not change, since keys would move to other partitions. */
const PARTITIONS = 3
const DEAD_LETTER_PARTITIONS = 1

/** The position is an exclusive bound in SQL, so it need not be the position of an event. */
export const checkpointOf = (
  { id, replay, replays, position, from_position }: SubscriptionDelivery,
  epoch: bigint,
): DeliveryCheckpoint => ({
  id,
  epoch,
  replay: replay ?? replays,
  position: position ?? from_position - 1n,
})

const rightsOf = (id: string) => {
  const { topic, deadLetterTopic, groupPrefix } = topicNamesOf(id)
  return { topics: [topic, deadLetterTopic], groupPrefix }
}

/** The row is written before the topics are created, so the topics of a deleted subscription are always found. */
export const provideTopics = async (
  { database: { sql }, bus, topicBytes, needsAuthorizer }: SubscriptionDependencies,
  subscription: SubscriptionDelivery,
  epoch: bigint,
): Promise<void> => {
  const checkpoint = await acquireDelivery(sql, checkpointOf(subscription, epoch))
  const { topic, deadLetterTopic } = topicNamesOf(subscription.id)
  const settings = { retentionMs: TOPIC_RETENTION_MS, retentionBytes: topicBytes }
  await bus.ensureTopics([
    { topic, partitions: PARTITIONS, ...settings },
    { topic: deadLetterTopic, partitions: DEAD_LETTER_PARTITIONS, ...settings },
  ])
  const { principal } = subscription
  const acl = principal === null ? 'none' : await bus.grantReading(principal, rightsOf(subscription.id))
  if (acl === 'not_enforced' && needsAuthorizer === true)
    throw new Error(
      'The broker has no authorizer, so every Kafka client could read the topic. Give the broker an authorizer, or add kafka-no-authorizer to ALLOW_INSECURE.',
    )
  await noteTopics(sql, checkpoint, { acl, topicBytes })
}

/** Revokes the right to read, so the broker refuses the next fetch. */
export const withdrawRights = async (
  { database: { sql }, bus }: SubscriptionDependencies,
  subscription: SubscriptionDelivery,
  epoch: bigint,
): Promise<void> => {
  if (subscription.acl !== 'granted') return
  await bus.revokeReading(rightsOf(subscription.id))
  await noteAcl(sql, await acquireDelivery(sql, checkpointOf(subscription, epoch)), null)
}

export const removeTopics = async (
  { database: { sql }, bus }: SubscriptionDependencies,
  { id }: SubscriptionDelivery,
): Promise<void> => {
  const rights = rightsOf(id)
  await bus.revokeReading(rights)
  await bus.deleteTopics(rights.topics)
  await removeDelivery(sql, id)
}
