import type { z } from 'zod'
import type { NeedsFourEyes } from '../identity/approvalPolicy.ts'
import type { ApiKeySecrets } from '../identity/apiKeySecrets.ts'
import type { Principal, PrincipalKind, Scope } from '../identity/principal.ts'
import type { Context, Ledger } from '../commands/commandHandler.ts'
import type { Denials } from '../commands/denials.ts'
import type { PersonalTexts } from '../personalTexts/personalTexts.ts'
import type { TenantStatuses } from '../commands/tenantStatus.ts'
import type { ScopedKey } from '../commands/idempotency/record.ts'
import type { Database, Json } from '../ports.ts'
import type { Cursors } from './request/cursor.ts'
import type { RateLimits, RateClass } from './access/rateLimits.ts'
import type { ErrorCode } from './response/problemCatalogue.ts'
import type { ConcurrencyLimits } from './access/concurrencyLimits.ts'
import type { Tail } from './resources/events/tail.ts'
import type { Version } from './versions/index.ts'
import type { KeyedOperation } from '../commands/idempotency/outcomes.ts'

/** The types of an endpoint's declaration, of the call that its handler gets, and of the reply that it returns. */

/** A response body that is sent while it is read: server-sent events of GET /events, the file of an export. */
export type Streamed = (send: (chunk: string | Uint8Array) => Promise<void>, signal: AbortSignal) => Promise<void>

export type Reply = {
  readonly status: number
  /** JSON, unless `contentType` says otherwise. */
  readonly body?: Json | object | string
  readonly stream?: Streamed
  readonly headers?: Readonly<Record<string, string>>
  readonly contentType?: string
}

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
  /** How many subscriptions a tenant may have. */
  readonly subscriptionsPerTenantMax: number
  /** How long a subscription goes on after its creator was last seen. */
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
  /**
   * Requires scopes beside that of the route, for data of the resources that the request names. Throws Problem (403) if
   * the caller lacks one. `recheck` requires them too.
   */
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
  /** Range and If-Range of a GET. */
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
  /** The command context of this request. */
  readonly context: Context
  /** The time that the deadline leaves for the handler. The arrival of the body is not counted. */
  readonly leftMs: number
}

/** RFC 7240. `waitMs` is undefined without a preference, and never longer than the deadline permits. */
export type Preference = { readonly respondAsync: boolean; readonly waitMs: number | undefined }

export type ResponseSpec = {
  readonly description: string
  readonly schema?: z.ZodType
  /** JSON when absent; several where the resource determines the type. */
  readonly contentType?: string | readonly string[]
  /** Response headers beyond those of every response. */
  readonly headers?: readonly (
    | 'ETag'
    | 'Location'
    | 'Link'
    | 'Ledger-Position'
    | 'Idempotent-Replayed'
    | 'Preference-Applied'
    | 'Content-Disposition'
    | 'Content-Length'
    | 'Content-Range'
    | 'Accept-Ranges'
    | 'Repr-Digest'
  )[]
}

/**
 * The place of a request where an audited operation names its resource: the id in the path, a member of the body, or
 * `created`: only the response has the id. `none`: it names none, as a list.
 */
export type AuditedResource<B> = 'path' | 'created' | 'none' | { readonly bodyMember: keyof B & string }

/** A call that is answered from the log. Personal texts are in Postgres, unless they were used a moment ago. */
export type LogCall<P, Q, B, K extends KeyUse = KeyUse> = Omit<Call<P, Q, B, K>, 'database' | 'lists' | 'bulk'>

/**
 * A route with an idempotency key has the answer to a request whose key was used before; undefined for a new key. It is
 * asked for when Postgres or a quota has refused the request (usedKeys.ts).
 */
type Replay<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, K extends KeyUse> = K extends string
  ? {
      readonly replay: (call: LogCall<z.output<P>, z.output<Q>, z.output<B>, 'required'>) => Promise<Reply | undefined>
    }
  : unknown

/**
 * One endpoint, declared once. The router, authorization, validation, openapi.json, the scope table and the metric
 * labels are derived from it.
 */
export type Route<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  K extends KeyUse = KeyUse,
> = Replay<P, Q, B, K> & {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** `/invoices/{id}:approve` */
  readonly path: string
  /** With an idempotency key: one of the operations whose outcomes GET /idempotency-keys can find. */
  readonly operationId: K extends string ? KeyedOperation : string
  readonly summary: string
  readonly description?: string
  readonly tag: string
  /** The scope that the credential needs; `none` for public endpoints. */
  readonly scope: Scope | 'none'
  /** Other scopes that permit the request; the handler knows what their holders may not see. */
  readonly orScopes?: readonly Scope[]
  /** The kinds of credential that are permitted; all when absent. */
  readonly kinds?: readonly PrincipalKind[]
  readonly rateClass: RateClass
  /** The time within which the request is answered; REQUEST_DEADLINE_MS when absent. */
  readonly deadlineMs?: number
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly bodyType?: 'application/json' | 'application/merge-patch+json'
  /**
   * Present when grants and denials of the operation are audit records. A grant whose effect is an event
   * gets its record from that event, by the table in projections/auditedEvents.ts.
   */
  readonly audited?: AuditedResource<z.output<B>>
  readonly idempotencyKey?: K
  readonly ifMatch?: 'required'
  /**
   * Ends what an earlier request began, once for each resource: settles it, revokes it, removes it. The quota of bytes
   * never refuses it.
   */
  readonly endsWork?: true
  /** Serves deleted resources too, as a history does. */
  readonly showsDeleted?: true
  /** Exempt from load shedding: health endpoints answer also when the service is overloaded or shutting down. */
  readonly underAnyLoad?: true
  /** Follows Prefer: respond-async and wait. */
  readonly takesPreference?: true
  /** The media types of the response; application/json when absent. */
  readonly offers?: readonly string[]
  /** Eventually consistent: takes If-Min-Position. */
  readonly isList?: true
  /** The order of the items of a list: names of members, with - before a descending one. */
  readonly order?: readonly string[]
  readonly responses: Readonly<Record<number, ResponseSpec>>
  /** The error codes of the endpoint itself; those that follow from the declaration are added to them. */
  readonly errors: readonly ErrorCode[]
  readonly handler: (call: Call<z.output<P>, z.output<Q>, z.output<B>, K>) => Promise<Reply>
}

/** Any declaration, with its types erased. */
export type AnyRoute = Omit<Route<z.ZodObject, z.ZodObject, z.ZodType>, 'audited'> & {
  readonly audited?: AuditedResource<Readonly<Record<string, unknown>>>
  readonly replay?: (call: LogCall<unknown, unknown, unknown, 'required'>) => Promise<Reply | undefined>
}

/**
 * Infers the types of a declaration and erases them: the request pipeline calls each handler with the values that it
 * checked.
 */
export const route = <P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, K extends KeyUse = undefined>(
  declaration: Route<P, Q, B, K>,
): AnyRoute => declaration as never
