import type { IsStillAllowed } from '../../commands/subscriptions/permission.ts'
import type { Ledger } from '../../commands/commandHandler.ts'
import type { Database, FactBus, Logger } from '../../ports.ts'

/** The projector, as far as it runs in this process. */
export type ObservedProjector = {
  /** Whether this process has the projector's lease, so every change of a read model is announced to listeners. */
  readonly isHere: () => boolean
  /** Calls the listener after each batch, and when the projector begins or ends here, until it is removed. */
  readonly listen: (listener: () => void) => () => void
}

export type SubscriptionDependencies = {
  readonly database: Database
  /** A connection of its own: requests are serialized per bus, and the publisher must not wait for subscriptions. */
  readonly bus: FactBus
  /** The bytes that Kafka keeps of each partition, since replays without end would fill its disks. */
  readonly topicBytes: number
  /** How long a subscription continues after its creator was last seen. */
  readonly confirmationMs: number
  /** Subscriptions with a principal are held while the broker has no authorizer to protect their topics. */
  readonly needsAuthorizer?: boolean
  readonly ledger: Ledger
  readonly isStillAllowed: IsStillAllowed
  readonly logger: Logger
  /** Without it the tables are looked at again and again. */
  readonly projector?: ObservedProjector
}
