import { facts, publishedBy } from '../../projections/facts/projection.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { CloudEvent } from '../../streams/facts.ts'
import { aggregates, isCategory } from '../../streams/index.ts'
import type { Database, FactBus, FactMessage, StoredEvent, TopicSettings } from '../ports.ts'
import { moveCheckpoint, takeCheckpoint } from './checkpoints.ts'
import { decode } from './decode.ts'
import type { Feed } from './run.ts'

const PARTITIONS = 12
const RETENTION_MS = 7 * 24 * 60 * 60 * 1000

export const topicOf = (category: string): string => `ledger.${category}.v1`
// One list with GET /events, so that what can be read there is what the topics hold.
const ANALYST_TOPICS: readonly TopicSettings[] = facts.categories.map(category => ({
  topic: topicOf(category),
  partitions: PARTITIONS,
  retentionMs: RETENTION_MS,
}))

/** CloudEvents 1.0 in the binary mode of its Kafka binding: attributes are headers, the value is the data alone. */
export const messageOf = (topic: string, event: CloudEvent): FactMessage => {
  const { data, datacontenttype, traceparent, ...attributes } = event
  const headers = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce_${name}`, value]))
  return {
    topic,
    key: event.partitionkey,
    headers: { ...headers, 'content-type': datacontenttype, ...(traceparent === undefined ? {} : { traceparent }) },
    value: JSON.stringify(data),
  }
}

/** Nobody's business outside the house, like most of the log: it is not even decoded. */
const isInternal = ({ stream, type }: StoredEvent): boolean => {
  const { category } = partsOf(stream)
  const known: Readonly<Record<string, unknown>> = isCategory(category) ? aggregates[category].facts : {}
  return known[type] === 'internal'
}

const messagesOf = (events: readonly StoredEvent[]): FactMessage[] =>
  events.flatMap(stored => {
    if (isInternal(stored)) return []
    const { category, recorded } = decode(stored)
    const event = publishedBy(category, recorded)
    return event ? [messageOf(topicOf(category), event)] : []
  })

/**
 * From the log to Kafka. The checkpoint moves after the broker's acknowledgement: whatever ends this process in between,
 * the facts come again, with the same ids and the same bytes, and none is left out.
 */
export const publisherOf = (database: Database, bus: FactBus): Feed => ({
  name: 'publisher',
  categories: facts.categories,
  begin: epoch => takeCheckpoint(database.sql, 'publisher', epoch),
  prepare: () => bus.ensureTopics(ANALYST_TOPICS),
  take: async (events, position, epoch) => {
    const messages = messagesOf(events)
    if (messages.length > 0) await bus.publish(messages)
    await moveCheckpoint(database.sql, ['publisher'], position, epoch)
  },
})
