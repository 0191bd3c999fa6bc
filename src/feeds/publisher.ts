import { facts, publishedBy } from '../../projections/facts/projection.ts'
import { TOPIC_PARTITIONS, TOPIC_RETENTION_MS, topicOf } from '../../projections/factTopics.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { CloudEvent } from '../../streams/facts.ts'
import { aggregates, type Category, isCategory } from '../../streams/index.ts'
import type { Database, EventStore, FactBus, FactMessage, Sql, StoredEvent, TopicSettings, World } from '../ports.ts'
import { moveCheckpoint, takeCheckpoint } from './checkpoints.ts'
import { decode } from './decode.ts'
import { openDelivery, type Outgoing } from './deliveryWithParking.ts'
import { type ParkedFact, placeOf } from './deadLetters.ts'
import type { Feed } from './subscriptionLoop.ts'

// One list with GET /events, so that what can be read there is what the topics hold.
const ANALYST_TOPICS: readonly TopicSettings[] = facts.categories.map(category => ({
  topic: topicOf(category),
  partitions: TOPIC_PARTITIONS,
  retentionMs: TOPIC_RETENTION_MS,
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

/** By category and type: 'internal', or how the fact is made. */
const announcedIn = (category: Category): Readonly<Record<string, unknown>> => aggregates[category].facts

/** Nobody's business outside the house, like most of the log: it is not even decoded. */
const isInternal = ({ stream, type }: StoredEvent): boolean => {
  const { category } = partsOf(stream)
  return isCategory(category) && announcedIn(category)[type] === 'internal'
}

/**
 * What this build knows and nobody announces: the store need not even send it. A type that this build does not know is
 * sent: a newer one may announce it, and then its key must wait.
 */
const knownTypes = (Object.keys(aggregates) as Category[]).flatMap(category => Object.entries(announcedIn(category)))
const announced = new Set(knownTypes.flatMap(([type, fact]) => (fact === 'internal' ? [] : [type])))
const NOT_ANNOUNCED = [...new Set(knownTypes.map(([type]) => type))].filter(type => !announced.has(type))

/** What is decoded only when it is sent: an event that this build cannot read is the trouble of its key alone. */
const outgoingOf = (stored: StoredEvent): Outgoing => ({
  ...placeOf(stored),
  message: () => {
    const { category, recorded } = decode(stored)
    const event = publishedBy(category, recorded)
    if (event === undefined) throw new Error(`${stored.type} is no fact.`)
    return messageOf(topicOf(category), event)
  },
})

export const PUBLISHER = 'publisher'

export type PublisherDependencies = {
  readonly database: Database
  readonly bus: FactBus
  readonly store: Pick<EventStore, 'readStream'>
  readonly world: World
}

/**
 * From the log to Kafka. The checkpoint moves after the broker's acknowledgement: whatever ends this process in between,
 * the facts come again, with the same ids and the same bytes, and none is left out.
 */
export const publisherOf = ({ database, bus, store, world }: PublisherDependencies): Feed => {
  const find = async ({ stream, revision, position }: ParkedFact): Promise<Outgoing> => {
    // Not every store tells the position of an event that is read from its stream, and the fact carries it.
    for await (const stored of store.readStream(stream, { from: revision, limit: 1 }))
      return outgoingOf({ ...stored, position })
    throw new Error(`${stream} has no event ${revision} any more.`)
  }
  return {
    name: PUBLISHER,
    categories: facts.categories,
    excludeTypes: NOT_ANNOUNCED,
    prepare: () => bus.ensureTopics(ANALYST_TOPICS),
    beginRun: async (epoch, signal) => {
      // The checkpoint is taken over before the parked keys are read: from then on no earlier holder can park another one,
      // whose later facts would overtake it here.
      const after = await takeCheckpoint(database.sql, PUBLISHER, epoch)
      // Moves nothing, but finds out whether this process is still the one.
      const fence = (sql: Sql): Promise<void> => moveCheckpoint(sql, [PUBLISHER], 'start', epoch)
      const delivery = await openDelivery(PUBLISHER, { database, bus, world, find, fence })
      return {
        after,
        processBatch: (events, position) =>
          delivery.send(events.filter(stored => !isInternal(stored)).map(outgoingOf), sql =>
            moveCheckpoint(sql, [PUBLISHER], position, epoch),
          ),
        background: () => delivery.serve(signal),
      }
    },
  }
}
