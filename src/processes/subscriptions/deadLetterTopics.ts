import { factsAt } from '../../../projections/facts/queries.ts'
import { reasonForTenant } from '../../../projections/deadLetterReasons.ts'
import type { CloudEvent } from '../../../streams/facts.ts'
import { topicNamesOf } from '../../commands/subscriptions/topicNames.ts'
import { markAnnounced, type DeadLetter, unannounced } from '../../feeds/deadLetters.ts'
import { factMessageOf } from '../../feeds/factMessage.ts'
import type { FactMessage } from '../../ports.ts'
import type { SubscriptionDependencies } from './dependencies.ts'

/** Announces dead letters with the headers of the fact, and the reason instead of the data, which may be the cause. */

const BATCH_MAX = 100

const announcementOf = (fact: DeadLetter, event: CloudEvent | undefined): FactMessage => {
  const { deadLetterTopic: topic } = topicNamesOf(fact.delivery)
  const headers = event
    ? factMessageOf(topic, event).headers
    : { ce_id: fact.event_id, 'content-type': 'application/json' }
  const { position, key, event_id, type, attempts, first_failed_at } = fact
  const reason = reasonForTenant(fact.reason)
  const letter = { position: position.toString(), key, event_id, type, reason, attempts, first_failed_at }
  return {
    topic,
    key,
    headers: { ...headers, dead_letter_reason: reason, dead_letter_attempts: String(attempts) },
    value: JSON.stringify(letter),
  }
}

/** Resolves to whether there were any; then there may be more. At least once, because of crashes before the note. */
export const announceDeadLetters = async (
  { database: { sql }, bus }: SubscriptionDependencies,
  subscription: string,
): Promise<boolean> => {
  const parked = await unannounced(sql, subscription, BATCH_MAX)
  if (parked.length === 0) return false
  const { text, values } = factsAt(parked.map(({ position }) => position))
  const events = new Map(
    (await sql<{ position: bigint; event: CloudEvent }>(text, values)).map(({ position, event }) => [position, event]),
  )
  await bus.publish(parked.map(fact => announcementOf(fact, events.get(fact.position))))
  await markAnnounced(sql, parked)
  return true
}
