import type { z } from 'zod'
import type { KeyedOperation } from '../commands/idempotency/keyStatus.ts'
import type { PrincipalKind, Scope } from '../identity/principal.ts'
import type { CallerRate } from '../settings/limits.ts'
import type { Json } from '../ports.ts'
import type { ErrorCode } from './problems/problemCatalogue.ts'
import type { Call, KeyUse, LogCall } from './services.ts'

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

/** Where a request names the resource of its audit record; `created`: its response does; `none`: nothing does. */
export type AuditedResource<B> = 'path' | 'created' | 'none' | { readonly bodyMember: keyof B & string }

/** The answer to a key that was used before; undefined for a new one. Asked for when Postgres or a quota refuses. */
type Replay<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, K extends KeyUse> = K extends string
  ? {
      readonly replay: (call: LogCall<z.output<P>, z.output<Q>, z.output<B>, 'required'>) => Promise<Reply | undefined>
    }
  : unknown

/** One endpoint. Router, authorization, validation, openapi.json and the metric labels are derived from it. */
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
  /** `default` when absent. */
  readonly rateClass?: CallerRate
  /** The time within which the request is answered; REQUEST_DEADLINE_MS when absent. */
  readonly deadlineMs?: number
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly bodyType?: 'application/json' | 'application/merge-patch+json'
  /** Grants and denials are audit records. A grant whose effect is an event gets its record from that event. */
  readonly audited?: AuditedResource<z.output<B>>
  readonly idempotencyKey?: K
  readonly ifMatch?: 'required'
  /** Ends what an earlier request began, once for each resource. The quota of bytes never refuses it. */
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
  readonly errors?: readonly ErrorCode[]
  readonly handler: (call: Call<z.output<P>, z.output<Q>, z.output<B>, K>) => Promise<Reply>
}

/** Any declaration, with its types erased. */
export type AnyRoute = Omit<Route<z.ZodObject, z.ZodObject, z.ZodType>, 'audited' | 'rateClass' | 'errors'> & {
  readonly rateClass: CallerRate
  readonly errors: readonly ErrorCode[]
  readonly audited?: AuditedResource<Readonly<Record<string, unknown>>>
  readonly replay?: (call: LogCall<unknown, unknown, unknown, 'required'>) => Promise<Reply | undefined>
}

/** Infers the types and erases them: the pipeline calls each handler with the values that it checked. */
export const route = <P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType, K extends KeyUse = undefined>(
  declaration: Route<P, Q, B, K>,
): AnyRoute => ({ rateClass: 'default', errors: [], ...declaration }) as never
