import { aggregates, type Category } from '../streams/index.ts'

/** Where the facts of an aggregate's streams are published. */
export const topicOf = (category: string): string => `ledger.${category}.v1`

/** Of each of them. As many partitions as ever: a key would move to another one, and its order with it. */
export const TOPIC_PARTITIONS = 12
export const TOPIC_RETENTION_MS = 7 * 24 * 60 * 60 * 1000

/** The aggregates whose facts manifests are about: all that announce anything, but for the manifests themselves. */
export const MANIFEST_CATEGORIES = ['order', 'invoice', 'payment', 'operation'] as const satisfies readonly Category[]

export const MANIFEST_TOPICS = MANIFEST_CATEGORIES.map(topicOf)

/** Of the subjects of a topic that manifests are about: `inv` for invoices. */
export const prefixOfTopic = (topic: string): string => {
  const category = MANIFEST_CATEGORIES.find(name => topicOf(name) === topic)
  if (category === undefined) throw new Error(`No manifest is about ${topic}.`)
  return aggregates[category].prefix
}

/** The topic of a fact by its subject; undefined for one that no manifest is about. */
export const topicOfSubject = (subject: string): string | undefined => {
  const category = MANIFEST_CATEGORIES.find(name => subject.startsWith(`${aggregates[name].prefix}_`))
  return category && topicOf(category)
}
