import type { Rejection } from '../../../streams/decider.ts'
import type { KeyConflict } from '../../commands/idempotency/conflicts.ts'

/**
 * Each error code with its status, category, retry guidance and title: problem documents, pages and openapi.json are
 * made from it. A detail is given where a Problem is made, at the end of this file, or in problemDocument.ts.
 */

export type Category =
  | 'invalid_input'
  | 'authentication'
  | 'authorization'
  | 'not_found'
  | 'conflict'
  | 'capacity'
  | 'dependency'
  | 'internal'

/**
 * `same_request`: unchanged, after the pause. `same_key`: only with the same Idempotency-Key.
 * `query_state_or_same_key`: the effect is unknown; read the state, or repeat with the same key. The others need
 * another request, or none.
 */
export type RetryStrategy =
  | 'do_not_retry'
  | 'reauthenticate'
  | 'refresh_and_resubmit'
  | 'same_request'
  | 'same_key'
  | 'query_state_or_same_key'

type Entry = {
  readonly status: number
  readonly category: Category
  readonly strategy: RetryStrategy
  readonly title: string
  /** The usual Retry-After. */
  readonly afterSeconds?: number
}

/** The usual status and retry guidance of each category. */
const INVALID = { status: 400, category: 'invalid_input', strategy: 'do_not_retry' } as const
const UNAUTHENTICATED = { status: 401, category: 'authentication', strategy: 'reauthenticate' } as const
const FORBIDDEN = { status: 403, category: 'authorization', strategy: 'do_not_retry' } as const
const NOT_FOUND = { status: 404, category: 'not_found', strategy: 'do_not_retry' } as const
const CAPACITY = { category: 'capacity', strategy: 'same_request' } as const
const CONFLICT = { status: 409, category: 'conflict', strategy: 'refresh_and_resubmit' } as const
const DEPENDENCY = { status: 503, category: 'dependency', strategy: 'same_request' } as const

export const PROBLEMS = {
  invalid_json: { ...INVALID, title: 'The body is not valid JSON.' },
  duplicate_json_key: { ...INVALID, title: 'The body contains a duplicate member name.' },
  json_limits_exceeded: { ...INVALID, title: 'The body is nested too deeply or has too many members.' },
  validation_failed: { ...INVALID, title: 'The request failed validation.' },
  unknown_parameter: { ...INVALID, title: 'The query has an unknown or repeated parameter.' },
  cursor_invalid: { ...INVALID, title: 'The cursor was not issued for this list.' },
  cursor_expired: { ...INVALID, title: 'The cursor has expired; restart from the first page.' },
  idempotency_key_missing: { ...INVALID, title: 'The Idempotency-Key header is required.' },
  idempotency_key_invalid: { ...INVALID, title: 'The Idempotency-Key header is malformed.' },
  precondition_invalid: { ...INVALID, title: 'A conditional request header is malformed.' },
  unsupported_api_version: { ...INVALID, title: 'This API version does not exist.' },
  multiple_credentials: { ...INVALID, title: 'The request carries more than one credential.' },
  bad_request_framing: { ...INVALID, title: 'The request is not well-formed HTTP.' },
  unauthenticated: { ...UNAUTHENTICATED, title: 'Authentication is required.' },
  token_invalid: { ...UNAUTHENTICATED, title: 'The access token is not valid for this service.' },
  token_expired: { ...UNAUTHENTICATED, title: 'The access token has expired.' },
  api_key_invalid: { ...UNAUTHENTICATED, title: 'The API key is not valid.' },
  insufficient_scope: { ...FORBIDDEN, title: 'The credential lacks a scope that this operation requires.' },
  credential_not_permitted: { ...FORBIDDEN, title: 'This kind of credential is not permitted here.' },
  policy_denied: { ...FORBIDDEN, title: 'A policy forbids this operation.' },
  resource_not_found: { ...NOT_FOUND, title: 'The resource does not exist.' },
  route_not_found: { ...NOT_FOUND, title: 'This path does not exist.' },
  method_not_allowed: { ...INVALID, status: 405, title: 'This path does not support this method.' },
  not_acceptable: { ...INVALID, status: 406, title: 'None of the available media types is acceptable.' },
  request_timeout: {
    ...CAPACITY,
    status: 408,
    title: 'The complete request was not received in time.',
    afterSeconds: 1,
  },
  invoice_state_conflict: { ...CONFLICT, title: 'The state of the invoice does not permit this operation.' },
  order_state_conflict: { ...CONFLICT, title: 'The state of the order does not permit this operation.' },
  payment_state_conflict: { ...CONFLICT, title: 'The state of the payment does not permit this operation.' },
  order_has_invoices: { ...CONFLICT, title: 'The order already has an active invoice.' },
  payment_not_allowed: { ...CONFLICT, title: 'This payment cannot be applied to the invoice.' },
  payment_exceeds_due: { ...CONFLICT, title: 'The payment exceeds the amount due.' },
  payment_reference_conflict: { ...CONFLICT, title: 'Another payment already has this reference.' },
  too_many_changes: {
    ...CONFLICT,
    strategy: 'do_not_retry',
    title: 'The resource has reached its maximum number of changes.',
  },
  projection_state_conflict: { ...CONFLICT, title: 'The state of the read model does not permit this operation.' },
  concurrent_modification: {
    ...CONFLICT,
    strategy: 'same_request',
    title: 'The resource was modified concurrently.',
    afterSeconds: 1,
  },
  idempotency_in_progress: {
    ...CONFLICT,
    strategy: 'same_key',
    title: 'A request with this idempotency key is still in progress.',
    afterSeconds: 1,
  },
  idempotency_key_expired: { ...CONFLICT, title: 'The idempotency key has expired.' },
  version_retired: { ...INVALID, status: 410, title: 'This API version is no longer supported.' },
  export_expired: { ...NOT_FOUND, status: 410, title: 'The export file is no longer available.' },
  precondition_failed: { ...CONFLICT, status: 412, title: 'The resource has changed since it was read.' },
  payload_too_large: { ...INVALID, status: 413, title: 'The body is too large.' },
  uri_too_long: { ...INVALID, status: 414, title: 'The URL is too long.' },
  unsupported_media_type: { ...INVALID, status: 415, title: 'The media type of the body is not supported here.' },
  range_not_satisfiable: { ...INVALID, status: 416, title: 'The requested range is outside the file.' },
  idempotency_key_reused: {
    ...INVALID,
    status: 422,
    title: 'The idempotency key was already used for a different request.',
  },
  precondition_required: {
    ...INVALID,
    status: 428,
    strategy: 'refresh_and_resubmit',
    title: 'The If-Match header is required.',
  },
  rate_limited: { ...CAPACITY, status: 429, title: 'Too many requests.', afterSeconds: 1 },
  quota_exceeded: { ...CAPACITY, status: 429, title: 'The quota is exhausted.', afterSeconds: 60 },
  headers_too_large: { ...INVALID, status: 431, title: 'The headers are too large.' },
  internal_error: {
    status: 500,
    category: 'internal',
    strategy: 'query_state_or_same_key',
    title: 'An internal error occurred.',
  },
  dependency_unavailable: { ...DEPENDENCY, title: 'A required dependency is not responding.', afterSeconds: 1 },
  overloaded: { ...CAPACITY, status: 503, title: 'The service is overloaded.', afterSeconds: 1 },
  shutting_down: { ...CAPACITY, status: 503, title: 'The service is shutting down.', afterSeconds: 1 },
  projection_behind: {
    ...DEPENDENCY,
    title: 'The list has not yet caught up with the requested position.',
    afterSeconds: 1,
  },
  deadline_exceeded: {
    status: 504,
    category: 'dependency',
    strategy: 'query_state_or_same_key',
    title: 'The request timed out; its effect is unknown.',
    afterSeconds: 1,
  },
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof PROBLEMS

export type Violation = { readonly pointer: string; readonly code: string; readonly detail: string }

/** The body of every failure: RFC 9457, with the members that the contract adds. */
export type ProblemDocument = {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly instance: string
  readonly code: ErrorCode
  readonly category: Category
  readonly correlation_id: string
  readonly retry: { readonly retryable: boolean; readonly strategy: RetryStrategy; readonly after_seconds?: number }
  readonly errors?: readonly Violation[]
} & ProblemMembers

/** Figures of a refusal, for programs. */
export type ProblemMembers = { readonly still_due?: number; readonly currency?: string }

export type ProblemExtras = {
  readonly detail?: string
  readonly errors?: readonly Violation[]
  readonly members?: ProblemMembers
  readonly headers?: Readonly<Record<string, string>>
  /** Retry-After instead of the usual one of the catalogue. */
  readonly afterSeconds?: number
  /** The scopes that would have sufficed, for WWW-Authenticate. */
  readonly scopes?: readonly string[]
  /** The correlation id of the request that was refused first, for the replay of a recorded refusal. */
  readonly correlationId?: string
}

/** Thrown at the HTTP boundary, and sent as a problem document. Inner layers return rejections as values. */
export class Problem extends Error {
  readonly code: ErrorCode
  readonly extras: ProblemExtras

  constructor(code: ErrorCode, extras: ProblemExtras = {}) {
    // A refusal is an answer: nobody reads its stack, which took 2 % of the time beside a caller over its limits.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(`${code}: ${extras.detail ?? PROBLEMS[code].title}`)
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'Problem'
    this.code = code
    this.extras = extras
  }
}

export const scopesText = (scopes: readonly string[]): string =>
  `${scopes.length === 1 ? 'the scope' : 'the scopes'} ${scopes.join(' and ')}`

/** The problem of a caller who lacks these scopes. */
export const insufficientScope = (scopes: readonly string[], detail: string): Problem =>
  new Problem('insufficient_scope', {
    detail: `${detail} /problems/insufficient_scope says how to get a token with it.`,
    scopes,
  })

/** `allow`: the methods of the path, as the header Allow has them. */
export const methodNotAllowed = (allow: string): Problem =>
  new Problem('method_not_allowed', { detail: `Methods of this path: ${allow}.`, headers: { Allow: allow } })

const NOT_RETRYABLE: readonly RetryStrategy[] = ['do_not_retry', 'reauthenticate', 'refresh_and_resubmit']

export const statusOf = (code: ErrorCode): number => PROBLEMS[code].status

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(PROBLEMS, code)

export const retryOf = (code: ErrorCode, { afterSeconds: seconds }: ProblemExtras = {}): ProblemDocument['retry'] => {
  const { strategy, afterSeconds: usualSeconds }: Entry = PROBLEMS[code]
  const afterSeconds = seconds ?? usualSeconds
  const retryable = !NOT_RETRYABLE.includes(strategy)
  return afterSeconds === undefined ? { retryable, strategy } : { retryable, strategy, after_seconds: afterSeconds }
}

// The details of the problems of refused commands: rejections, and conflicts of idempotency keys.

type Recorded = { readonly firstCorrelationId?: string; readonly replayed?: true }

export const problemOfRejection = (rejection: Rejection, { firstCorrelationId, replayed }: Recorded = {}): Problem => {
  if (!isErrorCode(rejection.rejected)) throw new Error(`There is no problem called ${rejection.rejected}.`)
  return new Problem(rejection.rejected, {
    ...explained(rejection),
    ...(firstCorrelationId === undefined ? {} : { correlationId: firstCorrelationId }),
    ...(replayed ? { headers: { 'Idempotent-Replayed': 'true' } } : {}),
  })
}

type Params = NonNullable<Rejection['params']>

const explained = ({ rejected, params = {} }: Rejection): Pick<ProblemExtras, 'detail' | 'members'> => {
  if (rejected === 'too_many_changes') return { detail: tooManyChanges(params) }
  if (rejected === 'payment_not_allowed' && 'state' in params) return { detail: paymentNotAllowed(params) }
  if (rejected === 'payment_exceeds_due' && 'still_due' in params)
    return {
      detail: `${params['still_due']} of ${params['amount_due']} is still due (minor units of ${params['currency']}). Pay at most that, with a new Idempotency-Key.`,
      members: { still_due: Number(params['still_due']), currency: String(params['currency']) },
    }
  const detail = sentencesOn(rejected, params)
  return detail === '' ? {} : { detail }
}

/** What a refused command found, in a sentence for each parameter. */
const sentencesOn = (code: string, { state, ...params }: Params): string => {
  const sentences = Object.entries(params).flatMap(([name, value]) => SENTENCES[name]?.(value) ?? [])
  const inState = state === undefined ? [] : [`The ${subjectOf(code)} is ${String(state).replaceAll('_', ' ')}.`]
  return [...inState, ...sentences].join(' ')
}

const subjectOf = (code: string): string => /^(order|payment)_state_conflict$/.exec(code)?.[1] ?? 'invoice'

type Sentence = (value: string | bigint) => string | readonly string[]

const SENTENCES: Readonly<Record<string, Sentence>> = {
  refundable: amount => `Amount that can still be refunded, in minor units: ${amount}.`,
  amount_pending: amount => (amount === 0n ? [] : `Pending payments, in minor units: ${amount}.`),
  payment_id: id => `The payment with this reference is ${id}.`,
  order_id: id => `The invoice belongs to the order ${id}.`,
  invoice_id: id => `The active invoice of the order is ${id}.`,
}

const paymentNotAllowed = ({ state, currency }: Params): string => {
  if (state === 'draft') return 'The invoice is draft. Approve it first: POST /invoices/{id}:approve.'
  if (state === 'voided') return 'The invoice is voided. Only an approved or partially paid invoice accepts payments.'
  return `The invoice accepts payments in its own currency only: ${currency}.`
}

const tooManyChanges = ({ events }: Params): string =>
  `Its history has ${events} events or more, and this request would add to them. ` +
  'Only operations that end it are still possible: cancel, delete or revoke it, or pay or refund the whole remainder. ' +
  'Create a new resource for further changes.'

/** The problem of a key that was used before. `path`: the path of the resources that the key created. */
export const problemOfKeyConflict = (conflict: KeyConflict, path: string): Problem =>
  conflict.kind === 'key_reused'
    ? keyReused(conflict.pointers)
    : new Problem('idempotency_key_expired', { headers: { Location: `${path}/${conflict.id}` } })

const keyReused = (pointers: readonly string[]): Problem =>
  new Problem('idempotency_key_reused', {
    detail: `${placesText(pointers)} ${pointers.length === 1 ? 'differs' : 'differ'} from the first request with this key. To retry, repeat that request unchanged; for a new intent, use a new key.`,
    errors: pointers.map(pointer => ({ pointer, code: 'differs', detail: 'Differs from the first request.' })),
  })

const PLACES_NAMED_MAX = 5
const POINTER_CHARS_MAX = 256

export const shortened = (pointer: string): string =>
  pointer.length <= POINTER_CHARS_MAX ? pointer : `${pointer.slice(0, POINTER_CHARS_MAX)}…`

/** The body as a whole has an empty pointer. */
const placesText = (pointers: readonly string[]): string => {
  const named = pointers.slice(0, PLACES_NAMED_MAX).map(pointer => shortened(pointer) || 'the body')
  return named.length < pointers.length ? `${named.join(', ')} and more` : named.join(' and ')
}
