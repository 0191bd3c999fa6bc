import { subscribedFacts } from '../../../projections/facts/queries.ts'
import { type CloudEvent, kindsIn } from '../../../streams/facts.ts'
import { aggregates } from '../../../streams/index.ts'
import { topicNamesOf } from '../../commands/subscriptions.ts'
import { positionOf } from '../../feeds/checkpoints.ts'
import { type Delivery, openDelivery, type Outgoing } from '../../feeds/deliveryWithParking.ts'
import { type ParkedFact, parkedBetween } from '../../feeds/deadLetters.ts'
import { messageOf } from '../../feeds/publisher.ts'
import {
  type Checkpoint,
  type SubscriptionDelivery,
  moveDelivery,
  restartDelivery,
} from '../../feeds/subscriptionCheckpoints.ts'
import { type Sql, Unavailable } from '../../ports.ts'
import type { SubscriptionDependencies } from './dependencies.ts'

/** One subscription that is being delivered: its facts from the journal to its topic, batch by batch. */

/** A batch is a request to the broker, and what one subscription takes before the next has its turn. */
const BATCH_MAX = 500
const SERVE_RETRY_MS = 1_000
/**
 * No position is as early: nothing moves to it, and a process that was replaced finds out. Positions of deliveries are
 * compared with rows of the journal in SQL and never reach the store, so that those between two events are fine here.
 */
const BEGINNING = -1n

export type OpenDelivery = {
  /** Delivers the next facts, up to and with this position. Throws Unavailable, Replaced or FactBusRefused. */
  readonly deliver: (line: SubscriptionDelivery, reached: bigint) => Promise<void>
  /** Resolves when nothing is under way any more. */
  readonly close: () => Promise<void>
}

type Row = { readonly position: bigint; readonly event: CloudEvent | null }
const FACTS_PROJECTION = 'facts_v1'
const factsProjectionOf = ({ tenant_id }: SubscriptionDelivery) => ({ delivery: FACTS_PROJECTION, tenant_id })

const wanted = ({ tenant_id, types, from_time }: SubscriptionDelivery) => ({ tenant: tenant_id, types, from_time })

/** Whether facts of these types are of streams like this one: of others a subscriber is not even told that they are there. */
const mayBeOf = (types: readonly string[], key: string): boolean =>
  Object.values(aggregates).some(
    ({ prefix, facts }) => key.startsWith(`${prefix}_`) && kindsIn(facts).some(({ type }) => types.includes(type)),
  )

const categoryOf = (subject: string): string | undefined =>
  Object.values(aggregates).find(({ prefix }) => subject.startsWith(`${prefix}_`))?.category

const outgoingOf = (topic: string, position: bigint, event: CloudEvent): Outgoing => ({
  key: event.partitionkey,
  position,
  stream: `${categoryOf(event.subject)}-${event.subject}`,
  revision: BigInt(event.sequence),
  event_id: event.id,
  type: event.type,
  tenant_id: event.tenantid,
  // The very message that the analysts' topic has, but for the topic.
  message: () => messageOf(topic, event),
})

type Read = { readonly position: bigint; readonly fact: Outgoing | null }

/** In the order of the log, what is in the page taken from there. */
const withUnread = (page: readonly Read[], unread: readonly ParkedFact[]): Outgoing[] => {
  const known = new Set(page.map(({ position }) => position))
  const missing = unread.filter(({ position }) => !known.has(position)).map(unreadOf)
  const facts = page.flatMap(({ fact }) => (fact ? [fact] : []))
  return missing.length === 0 ? facts : [...facts, ...missing].toSorted((a, b) => (a.position < b.position ? -1 : 1))
}

/**
 * An event that the journal could not take (its build cannot read it, say) is not in it yet, and may be a fact of the
 * subscription. It is parked here too, so that none of its key overtakes it: by the time an operator sends it on, it is there.
 */
const unreadOf = ({ delivery: _, reason, attempts: __, first_failed_at: ___, ...place }: ParkedFact): Outgoing => ({
  ...place,
  message: () => {
    throw new Error(`The journal has not taken it. ${reason}`)
  },
})

/** The next facts, and how far they go; undefined when there are none up to where the journal has got. */
const readNext = async (sql: Sql, line: SubscriptionDelivery, after: bigint, reached: bigint) => {
  // Asked first: what the journal takes in between is then in the page.
  const unread = await parkedBetween(sql, factsProjectionOf(line), after, reached)
  const { text, values } = subscribedFacts({ ...wanted(line), after, to: reached, limit: BATCH_MAX })
  const rows = await sql<Row>(text, values)
  const last = rows.at(-1)
  if (last === undefined) return undefined
  const { topic } = topicNamesOf(line.id)
  const facts = withUnread(
    rows.map(({ position, event }) => ({ position, fact: event && outgoingOf(topic, position, event) })),
    unread.filter(({ position, key }) => position <= last.position && mayBeOf(line.types, key)),
  )
  return { facts, position: last.position }
}

/** A parked fact again. Whatever it was parked as, only what was subscribed to is ever sent; wherever a replay began since. */
const findAgain = async (
  sql: Sql,
  line: SubscriptionDelivery,
  { position }: ParkedFact,
): Promise<Outgoing | undefined> => {
  const before = position - 1n
  if ((await parkedBetween(sql, factsProjectionOf(line), before, position)).length > 0)
    throw new Error('The journal has not taken it yet.')
  if ((await positionOf(sql, FACTS_PROJECTION)) < position) throw new Error('The journal has not come so far yet.')
  const { text, values } = subscribedFacts({
    ...wanted(line),
    from_time: null,
    after: before,
    to: position,
    limit: 1,
  })
  const [row] = await sql<Row>(text, values)
  return row?.event ? outgoingOf(topicNamesOf(line.id).topic, position, row.event) : undefined
}

/** What operators ask for is done beside the deliveries, and tried again when the broker did not answer. */
const serve = async ({ ledger: { world }, log }: SubscriptionDependencies, delivery: Delivery, signal: AbortSignal) => {
  while (!signal.aborted) {
    try {
      await delivery.serve(signal)
    } catch (error) {
      if (!(error instanceof Unavailable)) log.warn({ error }, 'a replay of dead letters was broken off')
      await world.sleep(SERVE_RETRY_MS, signal)
    }
  }
}

export const openLine = async (
  parts: SubscriptionDependencies,
  line: SubscriptionDelivery,
  from: Checkpoint,
): Promise<OpenDelivery> => {
  const { database, bus, ledger } = parts
  const { sql } = database
  const closing = new AbortController()
  let at = from
  const delivery = await openDelivery(line.id, {
    database,
    bus,
    world: ledger.world,
    find: parked => findAgain(sql, line, parked),
    fence: within => moveDelivery(within, { ...at, position: BEGINNING }),
  })
  const serving = serve(parts, delivery, closing.signal)
  return {
    deliver: async (newest, reached) => {
      if (newest.replays > at.replay) {
        at = { ...at, replay: newest.replays, position: newest.from_position - 1n }
        await restartDelivery(sql, at)
      }
      const next = await readNext(sql, newest, at.position, reached)
      if (next === undefined) return
      const then = { ...at, position: next.position }
      await delivery.send(next.facts, within => moveDelivery(within, then))
      at = then
    },
    close: async () => {
      closing.abort()
      await serving
    },
  }
}
