import type { Context, Ledger } from '../commands/commandHandler.ts'
import type { Denials } from '../commands/denials.ts'
import type { ScopedKey } from '../commands/idempotency/record.ts'
import type { PersonalTexts } from '../personalTexts/personalTexts.ts'
import type { TenantStatuses } from '../commands/tenantStatus.ts'
import type { ApiKeySecrets } from '../identity/apiKeySecrets.ts'
import type { NeedsFourEyes } from '../identity/approvalPolicy.ts'
import type { Principal, Scope } from '../identity/principal.ts'
import type { Database } from '../ports.ts'
import type { ConcurrencyLimits } from './admission/concurrencyLimits.ts'
import type { RateLimits } from './admission/rateLimits.ts'
import type { Cursors } from './reading/cursor.ts'
import type { Tail } from './reading/tail.ts'
import type { Version } from './versions/index.ts'

/** The dependencies of the handlers, the same for all requests. */
export type Services = {
  readonly ledger: Ledger
  readonly database: Database
  /** The same database, with connections for the pages of lists alone: no other read waits behind them. */
  readonly lists: Pick<Database, 'sql'>
  /** A pool of its own for downloads and counts of facts, which must not delay look-ups. */
  readonly bulk: Pick<Database, 'sql'>
  readonly personalTexts: PersonalTexts
  readonly cursors: Cursors
  readonly rateLimits: RateLimits
  readonly concurrencyLimits: ConcurrencyLimits
  readonly tail: Tail
  readonly tenantStatuses: TenantStatuses
  readonly denials: Denials
  /** Undefined without the setting API_KEY_PEPPER: then there are no API keys. */
  readonly keySecrets: ApiKeySecrets | undefined
  /** How many API keys a tenant may have that are neither revoked nor expired. */
  readonly apiKeysPerTenantMax: number
  readonly exportBytesPerTenant: number
  readonly subscriptionsPerTenantMax: number
  /** How long a subscription continues after its creator was last seen. */
  readonly subscriptionConfirmationMs: number
  /** How long the creation of a subscription waits until its topic exists; zero where there is no broker. */
  readonly topicWaitMs: number
  readonly idempotencyRetentionMs: number
  /** How long the body of a request may take to arrive. */
  readonly bodyDeadlineMs: number
  readonly needsFourEyes: NeedsFourEyes
  /** The tenant of those who operate the installation; undefined where there is none. */
  readonly operatorsTenant: string | undefined
  /** The service's public address: the resource of RFC 8707 and RFC 9728. */
  readonly publicUrl: string
  /** The base address of the `dataschema` of every fact; it never changes. */
  readonly schemaBaseUrl: string
  /** `metadata` of the embedded issuer; undefined for an external one. */
  readonly issuer: {
    readonly url: string
    readonly metadata: Readonly<Record<string, string | boolean | readonly string[]>> | undefined
  }
  /** The status of each dependency and feed for /readyz, in fixed words, since the endpoint is public. */
  readonly health: () => Promise<HealthReport>
  /** The metrics of all processes of the service on this machine, in the text format of Prometheus. */
  readonly metrics: () => Promise<string>
  /** The machine of this process: the free space of its data directory, and the certificates that its settings name. */
  readonly machine: () => Promise<{
    readonly freeBytes: number
    readonly certificates: readonly { readonly name: string; readonly expires_at: string | null }[]
  }>
  /** Aborts when the service is going to shut down: it is not ready any more, and continues to serve. */
  readonly draining: AbortSignal
  /** Aborts when the service begins to shut down; endless responses end then. */
  readonly stopping: AbortSignal
}

export type HealthReport = { readonly ready: boolean; readonly checks: Readonly<Record<string, string>> }

/** Whether a route requires an Idempotency-Key, honours one that is sent, or ignores it. */
export type KeyUse = 'required' | 'honoured' | undefined

/** One request, with everything in it checked, as its handler gets it. */
export type Call<P, Q, B, K extends KeyUse = KeyUse> = Services & {
  readonly principal: Principal
  /** Calls back when the response has ended, whether it was sent or not. */
  readonly onClose: (callback: () => void) => void
  /** Gives the request's turn to others, and resolves when it is its turn again. Throws Problem. */
  readonly nextTurn: () => Promise<void>
  /** Requires further scopes, now and at each `recheck`. Throws Problem (403) if the caller lacks one. */
  readonly requireScopes: (scopes: readonly Scope[]) => void
  /** Throws the Problem that would refuse the caller now: for responses that take longer than the first check. */
  readonly recheck: () => Promise<void>
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly path: string
  readonly correlationId: string
  readonly apiVersion: Version
  /** The test of If-Match that the current ETag must pass; present when the route requires If-Match. */
  readonly ifMatch: ((etag: string | undefined) => boolean) | undefined
  readonly ifNoneMatch: string | undefined
  readonly range: string | undefined
  readonly ifRange: string | undefined
  /** The media type of the response, one of those that the route offers. */
  readonly accept: string
  readonly lastEventId: string | undefined
  /** If-Min-Position: a list must include everything up to this position. */
  readonly minPosition: bigint | undefined
  readonly prefer: Preference
  /** The Idempotency-Key in the scope of its caller and operation. */
  readonly idempotency: K extends 'required' ? ScopedKey : ScopedKey | undefined
  readonly context: Context
  /** The time that the deadline leaves for the handler. The arrival of the body is not counted. */
  readonly leftMs: number
}

/** RFC 7240. `waitMs` is undefined without a preference, and never longer than the deadline permits. */
export type Preference = { readonly respondAsync: boolean; readonly waitMs: number | undefined }

/** A call that is answered from the log. Personal texts are in Postgres, unless they were used a moment ago. */
export type LogCall<P, Q, B, K extends KeyUse = KeyUse> = Omit<Call<P, Q, B, K>, 'database' | 'lists' | 'bulk'>

export type AnyCall = Call<unknown, unknown, unknown>
export type AnyLogCall = LogCall<unknown, unknown, unknown>
