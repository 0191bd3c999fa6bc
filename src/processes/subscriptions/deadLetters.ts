import { factsAt } from '../../../projections/facts/queries.ts'
import { toldReason } from '../../../projections/parkedReasons.ts'
import type { CloudEvent } from '../../../streams/facts.ts'
import { topicNamesOf } from '../../commands/subscriptions.ts'
import { markAnnounced, type ParkedFact, unannounced } from '../../feeds/deadLetters.ts'
import { messageOf } from '../../feeds/publisher.ts'
import type { FactMessage } from '../../ports.ts'
import type { SubscriptionDependencies } from './dependencies.ts'

/**
 * What is parked is announced on the dead letter topic of its subscription: the headers of the fact, and in place of its
 * data why it was not delivered. The data may be the very reason, and the fact itself can still be read at GET /events.
 */

const AT_ONCE = 100

const announcementOf = (fact: ParkedFact, event: CloudEvent | undefined): FactMessage => {
  const { deadLetterTopic: topic } = topicNamesOf(fact.delivery)
  const headers = event ? messageOf(topic, event).headers : { ce_id: fact.event_id, 'content-type': 'application/json' }
  const { position, key, event_id, type, attempts, first_failed_at } = fact
  const reason = toldReason(fact.reason)
  const told = { position: position.toString(), key, event_id, type, reason, attempts, first_failed_at }
  return {
    topic,
    key,
    headers: { ...headers, dead_letter_reason: reason, dead_letter_attempts: String(attempts) },
    value: JSON.stringify(told),
  }
}

/** At least once: a process that ends between the two says it again. `of`: the subscriptions that are being delivered. */
export const announceDeadLetters = async (
  { database: { sql }, bus }: SubscriptionDependencies,
  of: readonly string[],
): Promise<void> => {
  const parked = of.length === 0 ? [] : await unannounced(sql, of, AT_ONCE)
  if (parked.length === 0) return
  const { text, values } = factsAt(parked.map(({ position }) => position))
  const events = new Map(
    (await sql<{ position: bigint; event: CloudEvent }>(text, values)).map(({ position, event }) => [position, event]),
  )
  await bus.publish(parked.map(fact => announcementOf(fact, events.get(fact.position))))
  await markAnnounced(sql, parked)
}
