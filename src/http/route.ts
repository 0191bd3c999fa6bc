import type { z } from 'zod'
import type { ApiKeySecrets } from '../identity/apiKeySecrets.ts'
import type { Principal, PrincipalKind, Scope } from '../identity/principal.ts'
import type { Context, Ledger } from '../commands/handle.ts'
import type { Denials } from '../commands/denials.ts'
import type { TenantStatuses } from '../commands/tenantStatus.ts'
import type { ScopedKey } from '../commands/identifiers.ts'
import type { Database, Json } from '../ports.ts'
import type { Cursors } from './request/cursor.ts'
import type { Limits, RateClass } from './access/rateLimits.ts'
import type { Pace } from './server/pacing.ts'
import type { ErrorCode } from './response/problemCatalogue.ts'
import type { Shares } from './access/concurrencyLimits.ts'
import type { Tail } from './resources/events/tail.ts'

/** A body that is sent as it is read: GET /events as server-sent events, the file of an export. */
export type Streamed = (send: (chunk: string | Uint8Array) => Promise<void>, signal: AbortSignal) => Promise<void>

export type Reply = {
  readonly status: number
  /** JSON, unless `contentType` says otherwise. */
  readonly body?: Json | object | string
  readonly stream?: Streamed
  readonly headers?: Readonly<Record<string, string>>
  readonly contentType?: string
}

/** What the handlers work with, the same for all requests. */
export type Services = {
  readonly ledger: Ledger
  readonly database: Database
  readonly cursors: Cursors
  readonly limits: Limits
  readonly pace: Pace
  readonly shares: Shares
  readonly tail: Tail
  readonly tenantStatuses: TenantStatuses
  readonly denials: Denials
  /** Undefined where the setting is missing without which there are no API keys. */
  readonly keySecrets: ApiKeySecrets | undefined
  /** How many exports a caller may have under way. */
  readonly exportsAtOnceMax: number
  /** How many API keys a tenant may have that are neither revoked nor expired. */
  readonly apiKeysPerTenantMax: number
  /** How many subscriptions a tenant may have. */
  readonly subscriptionsPerTenantMax: number
  /** How long who creates a subscription waits for its topic to be there; zero where there is no broker. */
  readonly topicWaitMs: number
  readonly idempotencyRetentionMs: number
  /** How long the body of a request may take to arrive. */
  readonly bodyDeadlineMs: number
  /** Whether the policy of the tenant wants a second pair of eyes on an invoice of this amount, in minor units. */
  readonly needsFourEyes: (tenant: string, currency: string, amount: bigint) => boolean
  /** The address under which callers know the service: the resource of RFC 8707 and RFC 9728. */
  readonly publicUrl: string
  /** The address in front of the `dataschema` of every fact; it never changes. */
  readonly factBase: string
  /** `metadata` when the issuer is our own. */
  readonly issuer: {
    readonly url: string
    readonly metadata: Readonly<Record<string, string | boolean | readonly string[]>> | undefined
  }
  /** Fixed words for every part and feed of this process, for /readyz: anybody may read them. */
  readonly health: () => Promise<HealthReport>
  /** Aborts when the service begins to shut down: what has no end of its own ends then. */
  readonly stopping: AbortSignal
}

export type HealthReport = { readonly ready: boolean; readonly checks: Readonly<Record<string, string>> }

/** One request on its way through its handler. Everything in it has been checked. */
export type Call<P, Q, B> = Services & {
  readonly principal: Principal
  /** Calls back when the answer is over, whether it was sent or not. */
  readonly onClose: (callback: () => void) => void
  /** Throws the Problem that the caller would now be refused with: for what goes on after the first answer. */
  readonly recheck: () => Promise<void>
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly path: string
  readonly correlationId: string
  readonly apiVersion: string
  /** Present when the route requires If-Match: the test that the current ETag must pass. */
  readonly ifMatch: ((etag: string | undefined) => boolean) | undefined
  readonly ifNoneMatch: string | undefined
  /** Range and If-Range of a GET. */
  readonly range: string | undefined
  readonly ifRange: string | undefined
  /** The media type to answer with: one of what the route offers. */
  readonly accept: string
  readonly lastEventId: string | undefined
  /** If-Min-Position: a list must know of everything up to here. */
  readonly minPosition: bigint | undefined
  readonly prefer: Preference
  /** The key in its scope, when the caller sent one. */
  readonly idempotency: ScopedKey | undefined
  /** The command context of this request. */
  readonly context: Context
  /** How much of the deadline was left when the whole request had come. */
  readonly leftMs: number
}

/** RFC 7240. `waitMs` is absent when the caller did not say, and never longer than the deadline permits. */
export type Preference = { readonly respondAsync: boolean; readonly waitMs: number | undefined }

export type ResponseSpec = {
  readonly description: string
  readonly schema?: z.ZodType
  /** JSON when absent; several where the resource decides which it is. */
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
 * One endpoint, declared once: the router, authorization, validation, openapi.json, the scope table and the labels of the
 * metrics are all made from this value.
 */
export type Route<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType> = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** `/invoices/{id}:approve` */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tag: string
  /** What the credential must permit; `none` for what anybody may read. */
  readonly scope: Scope | 'none'
  /** Other scopes that open the door; the handler knows what their holders may not see. */
  readonly orScopes?: readonly Scope[]
  /** The kinds of credential that may; all when absent. */
  readonly kinds?: readonly PrincipalKind[]
  readonly rateClass: RateClass
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly bodyType?: 'application/json' | 'application/merge-patch+json'
  /** Whether an Idempotency-Key is needed, taken when sent, or meaningless here. */
  /** Its grants and denials are the auditors' business. */
  readonly sensitive?: true
  readonly idempotencyKey?: 'required' | 'honoured'
  readonly ifMatch?: 'required'
  /** Answered also when the service is overloaded or stopping: it says how the service is. */
  readonly underAnyLoad?: true
  /** Follows Prefer: respond-async and wait. */
  readonly takesPreference?: true
  /** The media types of its answer; application/json when absent. */
  readonly offers?: readonly string[]
  /** Eventually consistent: takes If-Min-Position. */
  readonly isList?: true
  readonly responses: Readonly<Record<number, ResponseSpec>>
  /** The codes of this endpoint's own; those that follow from the declaration are added to it. */
  readonly errors: readonly ErrorCode[]
  readonly handle: (call: Call<z.output<P>, z.output<Q>, z.output<B>>) => Promise<Reply>
}

export type AnyRoute = Route<z.ZodObject, z.ZodObject, z.ZodType>

/** Infers the types of a declaration and forgets them afterwards: the app calls every handler with what it checked. */
export const route = <P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType>(
  declaration: Route<P, Q, B>,
): AnyRoute => declaration as never

/** Whatever the endpoint: what the door, the framing and our own faults answer. */
const COMMON: readonly ErrorCode[] = [
  'bad_request_framing',
  'uri_too_long',
  'headers_too_large',
  'multiple_credentials',
  'unsupported_api_version',
  'unknown_parameter',
  'not_acceptable',
  'internal_error',
]
const UNDER_LOAD: readonly ErrorCode[] = ['overloaded', 'shutting_down', 'rate_limited']
const AUTHENTICATED: readonly ErrorCode[] = [
  'unauthenticated',
  'token_invalid',
  'token_expired',
  'api_key_invalid',
  'insufficient_scope',
  'policy_denied',
  'rate_limited',
  'dependency_unavailable',
]
const WITH_BODY: readonly ErrorCode[] = [
  'unsupported_media_type',
  'payload_too_large',
  'request_timeout',
  'invalid_json',
  'duplicate_json_key',
  'json_limits_exceeded',
  'validation_failed',
]

const NOT_FOR_API_KEYS: readonly ErrorCode[] = ['credential_not_permitted']
/** Whether a key may ever do this: it reads, and nothing else. */
export const isForApiKeys = ({ scope, kinds }: AnyRoute): boolean =>
  scope.endsWith(':read') && (kinds === undefined || kinds.includes('api_key'))

/** Every code that the endpoint can answer with, each once. */
export const errorsOf = (declared: AnyRoute): readonly ErrorCode[] => [
  ...new Set<ErrorCode>([
    ...COMMON,
    ...(declared.underAnyLoad ? [] : UNDER_LOAD),
    ...(declared.scope === 'none' ? [] : AUTHENTICATED),
    // The quota of API keys counts wherever one is sent, also where none is permitted: 429 comes before 403.
    ...(declared.scope === 'none' ? [] : (['quota_exceeded'] as const)),
    ...(declared.scope === 'none' || isForApiKeys(declared) ? [] : NOT_FOR_API_KEYS),
    ...(declared.kinds ? NOT_FOR_API_KEYS : []),
    ...(declared.method === 'GET' ? [] : (['deadline_exceeded'] as const)),
    // With If-Match there is one try: who loses the race is told that the version is stale.
    ...(declared.method === 'GET' || declared.ifMatch ? [] : (['concurrent_modification'] as const)),
    ...(declared.body ? WITH_BODY : []),
    ...(declared.query ? (['validation_failed'] as const) : []),
    ...(declared.params ? (['resource_not_found'] as const) : []),
    ...(declared.isList ? (['precondition_invalid'] as const) : []),
    ...(declared.ifMatch ? (['precondition_required', 'precondition_failed', 'precondition_invalid'] as const) : []),
    ...(declared.idempotencyKey === 'required' ? (['idempotency_key_missing'] as const) : []),
    ...(declared.idempotencyKey
      ? (['idempotency_key_invalid', 'idempotency_key_reused', 'idempotency_key_expired'] as const)
      : []),
    ...declared.errors,
  ]),
]
