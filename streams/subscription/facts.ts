import type { FactMap } from '../facts.ts'
import type { SubscriptionEvent } from './events.ts'

/** Internal events: auditors read them at GET /audit-records. */
export const subscriptionFacts: FactMap<SubscriptionEvent> = {
  SubscriptionCreated: 'internal',
  SubscriptionPaused: 'internal',
  SubscriptionResumed: 'internal',
  SubscriptionReplayed: 'internal',
  SubscriptionReplayCompleted: 'internal',
  SubscriptionStopped: 'internal',
  SubscriptionDeleted: 'internal',
}
