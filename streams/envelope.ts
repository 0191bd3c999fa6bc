/** Events with their metadata, as they are stored and read. */

/** The caller, its authority, and the ids that lead to the request in logs, facts and traces. */
export type Metadata = {
  readonly tenant: string
  /** The `sub` of the credential. */
  readonly subject: string
  /** The `client_id` of the credential. */
  readonly client: string
  /** The client acted by itself, without a user; absent for users. */
  readonly workload?: true
  /** The scope that permitted the command, or the name of the process that sent it. */
  readonly authority: string
  readonly correlationId: string
  readonly causationId: string
  readonly traceparent?: string
  /** When the decision was made: RFC 3339 in UTC, milliseconds. */
  readonly at: string
  /** The version of the event's schema; upcasters convert older ones. */
  readonly schemaVersion: number
}

/** An event as aggregates, projections and fact maps see it: decoded, at its latest version. */
export type Recorded<E> = {
  readonly event: E
  /** The store's event id, a UUID. It is also the id of the published fact. */
  readonly eventId: string
  /** The id of the aggregate: `inv_…`. */
  readonly id: string
  /** Zero for the first event of a stream. Row revision, ETag and expected revision are this number. */
  readonly revision: bigint
  /** The commit position in the store's log of all streams. */
  readonly position: bigint
  readonly metadata: Metadata
  /** When the store took it, by the clock of the store; absent before the event is read from there. */
  readonly storedAt?: string
}

/** A decided event that is to be appended. */
export type Decided<E> = { readonly event: E; readonly eventId: string; readonly metadata: Metadata }

/** The tenant of streams that belong to the ledger itself. No credential has this tenant. */
export const SYSTEM_TENANT = 'ledger'
