/** Who asked, by what right, and how the request can be found again in logs, facts and traces. */
export type Metadata = {
  readonly tenant: string
  /** The `sub` of the credential. */
  readonly subject: string
  /** The `client_id` of the credential. */
  readonly client: string
  /** The scope that permitted the command, or the name of the process that sent it. */
  readonly authority: string
  readonly correlationId: string
  readonly causationId: string
  readonly traceparent?: string
  /** When the decision was made: RFC 3339 in UTC, milliseconds. */
  readonly at: string
  /** The version of the event's schema; upcasters bring older ones up to date. */
  readonly schemaVersion: number
}

/** An event as every aggregate, projection and fact map sees it: already decoded, at its latest version. */
export type Recorded<E> = {
  readonly event: E
  /** The store's event id, a UUID. It is also the id of the published fact. */
  readonly eventId: string
  /** The id of the aggregate: `inv_…`. */
  readonly id: string
  /** Zero for the first event of a stream. The only version number of this house. */
  readonly revision: bigint
  /** The commit position in the store's log of all streams. */
  readonly position: bigint
  readonly metadata: Metadata
}

/** A decided event on its way to the store. */
export type Decided<E> = { readonly event: E; readonly eventId: string; readonly metadata: Metadata }

/** Whose streams those are that belong to no tenant but to the ledger itself. No credential has this tenant. */
export const SYSTEM_TENANT = 'ledger'
