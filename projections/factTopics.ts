import { aggregates, type Category } from '../streams/index.ts'
import { manifest } from '../streams/manifest/index.ts'

/** Kafka topics of facts: their names and partitions, the categories that publish, and those that manifests count. */

/** The Kafka topic of an aggregate's facts. */
export const topicOf = (category: string): string => `ledger.${category}.v1`

/**
 * The number of partitions of each topic. It never changes, because keys would move to other partitions and lose their
 * order.
 */
export const TOPIC_PARTITIONS = 12

/** The categories that publish facts, by their `facts.ts`, in the order of the list of aggregates. */
export const PUBLISHED_CATEGORIES: readonly Category[] = (Object.keys(aggregates) as Category[]).filter(category =>
  Object.values(aggregates[category].facts).some(fact => fact !== 'internal'),
)

/** The categories that manifests count: all that publish facts, except the manifests themselves. */
export const MANIFEST_CATEGORIES = PUBLISHED_CATEGORIES.filter(category => category !== manifest.category)

export const MANIFEST_TOPICS = MANIFEST_CATEGORIES.map(topicOf)

export const categoryOfTopic = (topic: string): Category => {
  const category = MANIFEST_CATEGORIES.find(name => topicOf(name) === topic)
  if (category === undefined) throw new Error(`No manifest is about ${topic}.`)
  return category
}

/** The id prefix of a topic's subjects: `inv` for invoices. */
export const prefixOfTopic = (topic: string): string => aggregates[categoryOfTopic(topic)].prefix

/** The topic of a fact by its subject; undefined when no manifest counts it. */
export const topicOfSubject = (subject: string): string | undefined => {
  const category = MANIFEST_CATEGORIES.find(name => subject.startsWith(`${aggregates[name].prefix}_`))
  return category && topicOf(category)
}
