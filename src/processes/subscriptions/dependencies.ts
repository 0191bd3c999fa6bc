import type { IsStillAllowed } from '../../commands/subscriptionPermission.ts'
import type { Ledger } from '../../commands/commandHandler.ts'
import type { Database, FactBus, Log } from '../../ports.ts'

/** The dependencies of the delivery to subscriptions. */
export type SubscriptionDependencies = {
  readonly database: Database
  /** A connection of its own: requests are serialized per bus, and the publisher must not wait for subscriptions. */
  readonly bus: FactBus
  readonly ledger: Ledger
  readonly isStillAllowed: IsStillAllowed
  readonly log: Log
}
