import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { type CloudEvent, cloudEventOf, type FactMap, factOf } from '../../streams/facts.ts'
import { aggregates, type Category } from '../../streams/index.ts'
import type { Journal } from '../projection.ts'
import { PUBLISHED_CATEGORIES } from '../factTopics.ts'

/** One published fact, as GET /events and Kafka carry it. */
export type FactRow = {
  /** The commit position of its event: the order of the feed. */
  readonly position: bigint
  readonly tenant_id: string
  readonly type: string
  readonly subject: string
  readonly at: string
  readonly event: CloudEvent
}

/** The fact of an event, if it has one. The publisher and this projection share it. */
export const publishedBy = (category: Category, recorded: Recorded<AnyEvent>): CloudEvent | undefined => {
  const fact = factOf(aggregates[category].facts as FactMap<AnyEvent>, recorded)
  return fact && cloudEventOf(recorded, fact)
}

/**
 * Types of events without a fact. A type that this build does not know is not among them: a newer build may publish it.
 */
export const INTERNAL_TYPES: readonly string[] = Object.values(aggregates).flatMap(({ facts }) =>
  Object.entries(facts).flatMap(([type, fact]) => (fact === 'internal' ? [type] : [])),
)

const categoryOf = (id: string): Category => {
  for (const category of Object.keys(aggregates) as Category[])
    if (id.startsWith(`${aggregates[category].prefix}_`)) return category
  throw new Error(`No aggregate has ids like ${id}.`)
}

export const facts: Journal<AnyEvent, FactRow> = {
  name: 'facts_v1',
  categories: PUBLISHED_CATEGORIES,
  columns: { position: 'bigint', tenant_id: 'text', type: 'text', subject: 'text', at: 'timestamptz', event: 'json' },
  key: ['position'],
  rows: recorded => {
    const event = publishedBy(categoryOf(recorded.id), recorded)
    if (event === undefined) return []
    const { position, metadata, id } = recorded
    return [{ position, tenant_id: metadata.tenant, type: event.type, subject: id, at: metadata.at, event }]
  },
}
