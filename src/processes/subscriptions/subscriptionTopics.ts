import { TOPIC_RETENTION_MS } from '../../../projections/factTopics.ts'
import { topicNamesOf } from '../../commands/subscriptions.ts'
import {
  type Checkpoint,
  endDelivery,
  type SubscriptionDelivery,
  noteAcl,
  takeDelivery,
} from '../../feeds/subscriptionCheckpoints.ts'
import type { SubscriptionDependencies } from './dependencies.ts'

/** The topics of a subscription, and who may read them. */

/** Few: a subscriber has one tenant's facts to read. As many as ever, since a key would move with its order. */
const PARTITIONS = 3
const DEAD_LETTER_PARTITIONS = 1

/** Its position is an exclusive bound in SQL: the one before the first that is wanted need not be any event's own. */
export const checkpointOf = (
  { id, replay, replays, position, from_position }: SubscriptionDelivery,
  epoch: bigint,
): Checkpoint => ({
  id,
  epoch,
  replay: replay ?? replays,
  position: position ?? from_position - 1n,
})

const rightsOf = (id: string) => {
  const { topic, deadLetterTopic, groupPrefix } = topicNamesOf(id)
  return { topics: [topic, deadLetterTopic], groupPrefix }
}

/** The row comes first: topics that are there are always found again, and deleted with their subscription. */
export const provideTopics = async (
  { database: { sql }, bus }: SubscriptionDependencies,
  line: SubscriptionDelivery,
  epoch: bigint,
): Promise<void> => {
  const taken = await takeDelivery(sql, checkpointOf(line, epoch))
  const { topic, deadLetterTopic } = topicNamesOf(line.id)
  const settings = { retentionMs: TOPIC_RETENTION_MS }
  await bus.ensureTopics([
    { topic, partitions: PARTITIONS, ...settings },
    { topic: deadLetterTopic, partitions: DEAD_LETTER_PARTITIONS, ...settings },
  ])
  const { principal } = line
  await noteAcl(sql, taken, principal === null ? 'none' : await bus.grantReading(principal, rightsOf(line.id)))
}

/** Takes away what was granted: whoever reads the topic is refused from their next fetch on. */
export const withdrawRights = async (
  { database: { sql }, bus }: SubscriptionDependencies,
  line: SubscriptionDelivery,
  epoch: bigint,
): Promise<void> => {
  if (line.acl !== 'granted') return
  await bus.revokeReading(rightsOf(line.id))
  await noteAcl(sql, await takeDelivery(sql, checkpointOf(line, epoch)), null)
}

export const removeTopics = async (
  { database: { sql }, bus }: SubscriptionDependencies,
  { id }: SubscriptionDelivery,
): Promise<void> => {
  const rights = rightsOf(id)
  await bus.revokeReading(rights)
  await bus.deleteTopics(rights.topics)
  await endDelivery(sql, id)
}
