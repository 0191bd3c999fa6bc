import { facts, publishedBy } from '../../projections/facts/projection.ts'
import { TOPIC_PARTITIONS, topicOf } from '../../projections/factTopics.ts'
import { partsOf } from '../../streams/aggregate.ts'
import { aggregates, type Category, isCategory } from '../../streams/index.ts'
import type { EventStore, FactMessage, StoredEvent, TopicSettings } from '../ports.ts'
import { acquireCheckpoint, fenceCheckpoint, moveCheckpoint, moveCheckpointAlone } from './checkpoints.ts'
import { decode } from './decode.ts'
import { factMessageOf } from './factMessage.ts'
import { type DeliveryDependencies, openDeliveryWithParking, type Outgoing } from './deliveryWithParking.ts'
import { referenceOf } from './deadLetters.ts'
import { storedEventOf } from './parking.ts'
import { preparedEvents } from './preparedEvents.ts'
import type { Feed } from './feedLoop.ts'
import { TOPIC_RETENTION_MS } from '../settings/retention.ts'

/** One topic for each category of GET /events, so both have the same facts. */
const FACT_TOPICS: readonly TopicSettings[] = facts.categories.map(category => ({
  topic: topicOf(category),
  partitions: TOPIC_PARTITIONS,
  retentionMs: TOPIC_RETENTION_MS,
}))

/** By event type: 'internal', or the function that makes the fact. */
const factsOf = (category: Category): Readonly<Record<string, unknown>> => aggregates[category].facts

/** Whether the event has no fact. It is then neither published nor decoded. */
const isInternal = ({ stream, type }: StoredEvent): boolean => {
  const { category } = partsOf(stream)
  return isCategory(category) && factsOf(category)[type] === 'internal'
}

/**
 * The store need not send these. It sends types that this build does not know: a newer build may publish them, so their
 * keys wait.
 */
const allTypes = (Object.keys(aggregates) as Category[]).flatMap(category => Object.entries(factsOf(category)))
const published = new Set(allTypes.flatMap(([type, fact]) => (fact === 'internal' ? [] : [type])))
const UNPUBLISHED_TYPES = [...new Set(allTypes.map(([type]) => type))].filter(type => !published.has(type))

const messageOfStoredEvent = (stored: StoredEvent): FactMessage => {
  const { category, recorded } = decode(stored)
  const event = publishedBy(category, recorded)
  if (event === undefined) throw new Error(`${stored.type} is no fact.`)
  return factMessageOf(topicOf(category), event)
}

/** An event that this build cannot decode fails when its message is made, so it stops its key alone. */
const outgoingOf = (stored: StoredEvent, message: (stored: StoredEvent) => FactMessage): Outgoing => ({
  ...referenceOf(stored),
  message: () => message(stored),
})

export const PUBLISHER = 'publisher'

export const PUBLISHED_EVENTS = { categories: facts.categories, excludeTypes: UNPUBLISHED_TYPES } as const

export type PublisherDependencies = Pick<DeliveryDependencies, 'database' | 'bus' | 'world'> & {
  readonly store: Pick<EventStore, 'readStream'>
}

/**
 * The checkpoint moves after the broker's acknowledgement: after a crash in between, the same bytes are sent again. So
 * its commit need not wait for the disk.
 */
export const publisherOf = ({ database, bus, store, world }: PublisherDependencies): Feed => ({
  name: PUBLISHER,
  ...PUBLISHED_EVENTS,
  prepare: () => bus.ensureTopics(FACT_TOPICS),
  beginRun: async (epoch, signal) => {
    // The checkpoint is acquired before the parked keys are read: from then on no older epoch can park another key, whose
    // later facts would overtake it here.
    const after = await acquireCheckpoint(database.sql, PUBLISHER, epoch)
    const delivery = await openDeliveryWithParking(PUBLISHER, {
      database,
      bus,
      world,
      find: async parked => outgoingOf(await storedEventOf(store, parked), messageOfStoredEvent),
      fence: fenceCheckpoint(PUBLISHER, epoch),
    })
    const { resultOf, prepare, forget } = preparedEvents(messageOfStoredEvent)
    return {
      after,
      processBatch: async (events, position) => {
        const published = events.filter(stored => !isInternal(stored))
        const outgoing = published.map(stored => outgoingOf(stored, resultOf))
        await delivery.send(
          outgoing,
          sql => moveCheckpoint(sql, [PUBLISHER], position, epoch),
          () => moveCheckpointAlone(database.sql, { name: PUBLISHER, position, epoch }),
        )
        forget(published)
      },
      prepare: stored => {
        if (!isInternal(stored)) prepare(stored)
      },
      background: () => delivery.serve(signal),
    }
  },
})
