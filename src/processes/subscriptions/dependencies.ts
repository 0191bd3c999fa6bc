import type { IsStillAllowed } from '../../commands/subscriptions.ts'
import type { Ledger } from '../../commands/handle.ts'
import type { Database, Log, SubscriberBus } from '../../ports.ts'

/** What the delivery of subscriptions works with. */
export type SubscriptionDependencies = {
  readonly database: Database
  /** Its own: one request is under way at a time over all calls, and the analysts' facts must not wait for these. */
  readonly bus: SubscriberBus
  readonly ledger: Ledger
  readonly isStillAllowed: IsStillAllowed
  readonly log: Log
}
