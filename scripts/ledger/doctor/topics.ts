import type { Admin } from 'kafkajs'
import { MANIFEST_TOPICS, TOPIC_PARTITIONS } from '../../../projections/factTopics.ts'
import { type Check, finding, ok } from './finding.ts'

/** The check of the topics that the service publishes on. */

const SUBSCRIPTIONS = 'ledger.subscription.'

/** `topics`: the number of partitions by the name of the topic. */
export const topicsCheck = (topics: ReadonlyMap<string, number>): Check => {
  const missing = MANIFEST_TOPICS.filter(topic => !topics.has(topic))
  const other = MANIFEST_TOPICS.filter(topic => (topics.get(topic) ?? TOPIC_PARTITIONS) !== TOPIC_PARTITIONS)
  const subscriptions = [...topics.keys()].filter(topic => topic.startsWith(SUBSCRIPTIONS)).length
  if (missing.length === 0 && other.length === 0)
    return ok('topics', `${MANIFEST_TOPICS.length} of facts, ${subscriptions} of subscriptions`)
  const words = [
    ...(missing.length > 0 ? [`There is no topic ${missing.join(', ')}.`] : []),
    ...other.map(topic => `${topic} has ${topics.get(topic)} partitions instead of ${TOPIC_PARTITIONS}.`),
  ]
  return finding(
    'topics',
    words.join(' '),
    missing.length > 0
      ? 'The publisher creates them: run a process with that role and the right to create topics.'
      : 'Consumers rely on the order within a key: restore the number, or start with empty topics.',
  )
}

export const checkTopics = async (admin: Admin): Promise<Check> => {
  const { topics } = await admin.fetchTopicMetadata()
  return topicsCheck(new Map(topics.map(({ name, partitions }) => [name, partitions.length])))
}
