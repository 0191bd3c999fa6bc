import { subscribedFacts } from '../../../projections/facts/queries.ts'
import { type CloudEvent, kindsIn } from '../../../streams/facts.ts'
import { aggregates, streamOfId } from '../../../streams/index.ts'
import { topicNamesOf } from '../../commands/subscriptions/topicNames.ts'
import { positionOf } from '../../feeds/checkpoints.ts'
import { type DeliveryWithParking, openDeliveryWithParking, type Outgoing } from '../../feeds/deliveryWithParking.ts'
import { type DeadLetter, deadLettersBetween } from '../../feeds/deadLetters.ts'
import { factMessageOf } from '../../feeds/factMessage.ts'
import {
  type DeliveryCheckpoint,
  type SubscriptionDelivery,
  moveDelivery,
  restartDelivery,
} from '../../feeds/subscriptionCheckpoints.ts'
import { type Sql, Unavailable } from '../../ports.ts'
import type { SubscriptionDependencies } from './dependencies.ts'

/** A batch is one request to the broker; then the next subscription has its turn. */
const BATCH_MAX = 500
const REPLAY_RETRY_MS = 1_000
/** Moving a checkpoint here only tests the epoch, since it never moves back. These positions never reach the store. */
const BEGINNING = -1n

export type OpenDelivery = {
  /** Delivers the next facts up to this position. Throws Unavailable, EpochSuperseded or BrokerAccessDenied. */
  readonly deliver: (subscription: SubscriptionDelivery, projectedUpTo: bigint) => Promise<void>
  /** Resolves when no request is in flight any more. */
  readonly close: () => Promise<void>
}

type Row = { readonly position: bigint; readonly event: CloudEvent | null }
const FACTS_PROJECTION = 'facts_v1'
const factsProjectionOf = ({ tenant_id }: SubscriptionDelivery) => ({ delivery: FACTS_PROJECTION, tenant_id })

const selectionOf = ({ tenant_id, types, from_time }: SubscriptionDelivery) => ({ tenant: tenant_id, types, from_time })

/** Whether the key's stream can have these types. Dead letters of other streams are not the subscriber's. */
const mayHaveFactsOf = (types: readonly string[], key: string): boolean =>
  Object.values(aggregates).some(
    ({ prefix, facts }) => key.startsWith(`${prefix}_`) && kindsIn(facts).some(({ type }) => types.includes(type)),
  )

const outgoingOf = (topic: string, position: bigint, event: CloudEvent): Outgoing => ({
  key: event.partitionkey,
  position,
  stream: streamOfId(event.subject),
  revision: BigInt(event.sequence),
  event_id: event.id,
  type: event.type,
  tenant_id: event.tenantid,
  // Equal to the message on the topic of its category, except for the topic.
  message: () => factMessageOf(topic, event),
})

type PageItem = { readonly position: bigint; readonly fact: Outgoing | null }

/** The facts of a page and the unreadable events between them, in the order of the log. */
const withUnreadable = (page: readonly PageItem[], unreadable: readonly DeadLetter[]): Outgoing[] => {
  const positions = new Set(page.map(({ position }) => position))
  const missing = unreadable.filter(({ position }) => !positions.has(position)).map(unreadableOf)
  const facts = page.flatMap(({ fact }) => (fact ? [fact] : []))
  return missing.length === 0 ? facts : [...facts, ...missing].toSorted((a, b) => (a.position < b.position ? -1 : 1))
}

/** An event that the projection has parked may be a fact: it is parked here too, so no later one overtakes it. */
const unreadableOf = ({
  delivery: _,
  reason,
  attempts: __,
  first_failed_at: ___,
  ...reference
}: DeadLetter): Outgoing => ({
  ...reference,
  message: () => {
    throw new Error(`The facts projection has parked it. ${reason}`)
  },
})

/** The next facts and the position of the last one; undefined when there are none. */
const readNext = async (sql: Sql, subscription: SubscriptionDelivery, after: bigint, projectedUpTo: bigint) => {
  // Dead letters are read first: one that the projection writes between the two queries is then in the page.
  const parked = await deadLettersBetween(sql, factsProjectionOf(subscription), after, projectedUpTo)
  const { text, values } = subscribedFacts({ ...selectionOf(subscription), after, to: projectedUpTo, limit: BATCH_MAX })
  const rows = await sql<Row>(text, values)
  const last = rows.at(-1)
  if (last === undefined) return undefined
  const { topic } = topicNamesOf(subscription.id)
  const facts = withUnreadable(
    rows.map(({ position, event }) => ({ position, fact: event && outgoingOf(topic, position, event) })),
    parked.filter(({ position, key }) => position <= last.position && mayHaveFactsOf(subscription.types, key)),
  )
  return { facts, position: last.position }
}

/** Undefined if its type is not subscribed to. `from_time` may be of a later replay, so it is not applied. */
const findParked = async (sql: Sql, subscription: SubscriptionDelivery, { position }: DeadLetter) => {
  const before = position - 1n
  if ((await deadLettersBetween(sql, factsProjectionOf(subscription), before, position)).length > 0)
    throw new Error('The facts projection has parked it too.')
  if ((await positionOf(sql, FACTS_PROJECTION)) < position)
    throw new Error('The facts projection has not reached it yet.')
  const { text, values } = subscribedFacts({
    ...selectionOf(subscription),
    from_time: null,
    after: before,
    to: position,
    limit: 1,
  })
  const [row] = await sql<Row>(text, values)
  return row?.event ? outgoingOf(topicNamesOf(subscription.id).topic, position, row.event) : undefined
}

/** Serves the requests of operators beside the delivery, and again when the database did not answer. */
const serve = async (
  { ledger: { world }, logger }: SubscriptionDependencies,
  delivery: DeliveryWithParking,
  signal: AbortSignal,
) => {
  while (!signal.aborted) {
    try {
      await delivery.serve(signal)
    } catch (error) {
      if (!(error instanceof Unavailable)) logger.warn({ error }, 'a replay of dead letters failed')
      await world.sleep(REPLAY_RETRY_MS, signal)
    }
  }
}

export const openDelivery = async (
  dependencies: SubscriptionDependencies,
  subscription: SubscriptionDelivery,
  acquired: DeliveryCheckpoint,
): Promise<OpenDelivery> => {
  const { database, bus, ledger } = dependencies
  const { sql } = database
  const closing = new AbortController()
  let checkpoint = acquired
  const delivery = await openDeliveryWithParking(subscription.id, {
    database,
    bus,
    world: ledger.world,
    find: parked => findParked(sql, subscription, parked),
    fence: transaction => moveDelivery(transaction, { ...checkpoint, position: BEGINNING }),
  })
  const serving = serve(dependencies, delivery, closing.signal)
  return {
    deliver: async (newest, projectedUpTo) => {
      if (newest.replays > checkpoint.replay) {
        checkpoint = { ...checkpoint, replay: newest.replays, position: newest.from_position - 1n }
        await restartDelivery(sql, checkpoint)
      }
      const next = await readNext(sql, newest, checkpoint.position, projectedUpTo)
      if (next === undefined) return
      const nextCheckpoint = { ...checkpoint, position: next.position }
      await delivery.send(next.facts, transaction => moveDelivery(transaction, nextCheckpoint))
      checkpoint = nextCheckpoint
    },
    close: async () => {
      closing.abort()
      await serving
    },
  }
}
