import type { FactMap } from '../facts.ts'
import type { SubscriptionEvent } from './events.ts'

/** Who is told of facts is no fact about money: auditors find it at GET /audit-records. */
export const subscriptionFacts: FactMap<SubscriptionEvent> = {
  SubscriptionCreated: 'internal',
  SubscriptionPaused: 'internal',
  SubscriptionResumed: 'internal',
  SubscriptionReplayed: 'internal',
  SubscriptionReplayCompleted: 'internal',
  SubscriptionStopped: 'internal',
  SubscriptionDeleted: 'internal',
}
