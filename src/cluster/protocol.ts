import type { Role } from '../settings/config.ts'
import type { FeedState } from '../feeds/feedLoop.ts'
import type { Counted, RateLimit } from '../ports.ts'
import type { ChildOperations, ParentOperations } from '../childProcesses/protocol.ts'

/** The state of a feed as JSON, which has no bigint. */
export type SentFeedState = Omit<FeedState, 'position'> & { readonly position: string }

export type ChildSettings = {
  readonly name: string
  readonly roles: readonly Role[]
  readonly apiProcesses: number
  readonly port: number
  readonly databaseUrl: string
  readonly eventStoreUrl: string
  readonly issuerPort: number | undefined
}

/** A message that comes with a connection. */
export type Handover = { readonly connection: number }

/** Called by a child on the primary. */
export type PrimaryOperations = ParentOperations & {
  /** The child serves connections from now on. */
  readonly listening: () => void
  /** The child has the connection of this number. */
  readonly acknowledge: (connection: number) => void
  /** The child closes, and takes no further connections. */
  readonly ending: () => void
  readonly waiting: (sentence: string) => void
  readonly outage: (sentence: string) => void
  /** The service cannot continue. */
  readonly refused: (reason: string) => void
  readonly count: (key: string, limit: RateLimit) => Promise<Counted>
  /** Resolves to whether a slot was taken. */
  readonly takeSlot: (key: string, max: number) => Promise<boolean>
  readonly freeSlot: (key: string) => void
  readonly reportFeeds: (states: readonly SentFeedState[]) => void
  /** Resolves to the metrics of all children. */
  readonly allMetrics: () => Promise<string>
}

/** Called by the primary on a child. */
export type ServiceOperations = ChildOperations & {
  readonly start: (settings: ChildSettings) => void
  /** Answered at once. `notAnswering`: the names of the children that do not answer. */
  readonly ping: (notAnswering: readonly string[]) => void
  /** The service is going to end: the child is not ready any more, and continues to serve. */
  readonly drain: () => void
  /** Resolves when the list in Postgres has the name, which the child refuses from now on. */
  readonly revoke: (name: string) => Promise<void>
  /** Resolves to the metrics of the child. */
  readonly metrics: () => Promise<string>
  /** `isReport`: as the process of the feeds has just reported them; false when it has ended. */
  readonly feeds: (states: readonly SentFeedState[], isReport: boolean) => void
}
