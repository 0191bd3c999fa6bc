import { facts, publishedBy } from '../../projections/facts/projection.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { CloudEvent } from '../../streams/facts.ts'
import { aggregates, isCategory } from '../../streams/index.ts'
import type { Database, EventStore, FactBus, FactMessage, Sql, StoredEvent, TopicSettings, World } from '../ports.ts'
import { moveCheckpoint, takeCheckpoint } from './checkpoints.ts'
import { decode } from './decode.ts'
import { createDelivery, type Outgoing } from './delivery.ts'
import type { ParkedFact } from './parked.ts'
import type { Feed } from './run.ts'

const PARTITIONS = 12
/** No position is as early. */
const BEGINNING = -1n
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

/** What is decoded only when it is sent: an event that this build cannot read is the trouble of its key alone. */
const outgoingOf = (stored: StoredEvent): Outgoing => ({
  key: partsOf(stored.stream).id,
  position: stored.position,
  stream: stored.stream,
  revision: stored.revision,
  event_id: stored.id,
  type: stored.type,
  tenant_id: String(stored.metadata['tenant'] ?? ''),
  message: () => {
    const { category, recorded } = decode(stored)
    const event = publishedBy(category, recorded)
    if (event === undefined) throw new Error(`${stored.type} is no fact.`)
    return messageOf(topicOf(category), event)
  },
})

export const PUBLISHER = 'publisher'

export type PublisherParts = {
  readonly database: Database
  readonly bus: FactBus
  readonly store: Pick<EventStore, 'readStream'>
  readonly world: World
}

/**
 * From the log to Kafka. The checkpoint moves after the broker's acknowledgement: whatever ends this process in between,
 * the facts come again, with the same ids and the same bytes, and none is left out.
 */
export const publisherOf = ({ database, bus, store, world }: PublisherParts): Feed => {
  let epoch = 0n
  const find = async ({ stream, revision }: ParkedFact): Promise<Outgoing> => {
    for await (const stored of store.readStream(stream, { from: revision, limit: 1 })) return outgoingOf(stored)
    throw new Error(`${stream} has no event ${revision} any more.`)
  }
  // Moves nothing, but finds out whether this process is still the one.
  const fence = (sql: Sql): Promise<void> => moveCheckpoint(sql, [PUBLISHER], BEGINNING, epoch)
  const delivery = createDelivery(PUBLISHER, { database, bus, world, find, fence })
  return {
    name: PUBLISHER,
    categories: facts.categories,
    begin: async taken => {
      epoch = taken
      await delivery.begin()
      return takeCheckpoint(database.sql, PUBLISHER, epoch)
    },
    prepare: () => bus.ensureTopics(ANALYST_TOPICS),
    take: (events, position) =>
      delivery.send(events.filter(stored => !isInternal(stored)).map(outgoingOf), sql =>
        moveCheckpoint(sql, [PUBLISHER], position, epoch),
      ),
    alongside: delivery.serve,
  }
}
