/**
 * The problem catalogue: each error code with its status, category, retry guidance and title. Problem documents,
 * headers, problem pages and openapi.json are derived from it. The detail is given where a Problem is made (for
 * rejections and key conflicts in rejectionDetails.ts); without one it is the title.
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

/** The usual retry guidance of each category. */
const INVALID = { category: 'invalid_input', strategy: 'do_not_retry' } as const
const UNAUTHENTICATED = { category: 'authentication', strategy: 'reauthenticate' } as const
const FORBIDDEN = { category: 'authorization', strategy: 'do_not_retry' } as const
const NOT_FOUND = { category: 'not_found', strategy: 'do_not_retry' } as const
const CAPACITY = { category: 'capacity', strategy: 'same_request' } as const
const CONFLICT = { category: 'conflict', strategy: 'refresh_and_resubmit' } as const
const DEPENDENCY = { category: 'dependency', strategy: 'same_request' } as const

export const PROBLEMS = {
  invalid_json: { status: 400, ...INVALID, title: 'The body is not JSON.' },
  duplicate_json_key: { status: 400, ...INVALID, title: 'The body names a member twice.' },
  json_limits_exceeded: { status: 400, ...INVALID, title: 'The body is nested too deep or has too many members.' },
  validation_failed: { status: 400, ...INVALID, title: 'The request does not fit its schema.' },
  unknown_parameter: { status: 400, ...INVALID, title: 'The query has a parameter that does not exist.' },
  cursor_invalid: { status: 400, ...INVALID, title: 'The cursor was not issued for this list.' },
  cursor_expired: { status: 400, ...INVALID, title: 'The cursor is too old; begin the list again.' },
  idempotency_key_missing: { status: 400, ...INVALID, title: 'The Idempotency-Key header is required.' },
  idempotency_key_invalid: { status: 400, ...INVALID, title: 'The Idempotency-Key header is malformed.' },
  precondition_invalid: { status: 400, ...INVALID, title: 'The conditional header is malformed.' },
  unsupported_api_version: { status: 400, ...INVALID, title: 'No contract has this API-Version.' },
  multiple_credentials: { status: 400, ...INVALID, title: 'The request carries more than one credential.' },
  bad_request_framing: { status: 400, ...INVALID, title: 'The request is not well-formed HTTP.' },
  unauthenticated: { status: 401, ...UNAUTHENTICATED, title: 'A credential is required.' },
  token_invalid: { status: 401, ...UNAUTHENTICATED, title: 'The access token is not valid here.' },
  token_expired: { status: 401, ...UNAUTHENTICATED, title: 'The access token has expired.' },
  api_key_invalid: { status: 401, ...UNAUTHENTICATED, title: 'The API key is not valid.' },
  insufficient_scope: { status: 403, ...FORBIDDEN, title: 'The credential lacks the scope for this operation.' },
  credential_not_permitted: { status: 403, ...FORBIDDEN, title: 'This kind of credential may not do this.' },
  policy_denied: { status: 403, ...FORBIDDEN, title: 'The policy of the tenant forbids this.' },
  resource_not_found: { status: 404, ...NOT_FOUND, title: 'There is no such resource.' },
  route_not_found: { status: 404, ...NOT_FOUND, title: 'There is no such path.' },
  method_not_allowed: { status: 405, ...INVALID, title: 'The path does not have this method.' },
  not_acceptable: { status: 406, ...INVALID, title: 'No representation has an acceptable media type.' },
  request_timeout: { status: 408, ...CAPACITY, title: 'The request did not arrive in time.', afterSeconds: 1 },
  invoice_state_conflict: { status: 409, ...CONFLICT, title: 'The state of the invoice does not permit this.' },
  order_state_conflict: { status: 409, ...CONFLICT, title: 'The state of the order does not permit this.' },
  payment_state_conflict: { status: 409, ...CONFLICT, title: 'The state of the payment does not permit this.' },
  order_has_invoices: { status: 409, ...CONFLICT, title: 'The order has a live invoice.' },
  payment_not_allowed: { status: 409, ...CONFLICT, title: 'The invoice does not take this payment.' },
  payment_exceeds_due: { status: 409, ...CONFLICT, title: 'The amount exceeds what is still due.' },
  payment_reference_conflict: { status: 409, ...CONFLICT, title: 'Another payment has this reference.' },
  too_many_changes: {
    status: 409,
    category: 'conflict',
    strategy: 'do_not_retry',
    title: 'The resource has been changed as often as it may be.',
  },
  projection_state_conflict: { status: 409, ...CONFLICT, title: 'The state of the read model does not permit this.' },
  concurrent_modification: {
    status: 409,
    category: 'conflict',
    strategy: 'same_request',
    title: 'Others changed the resource at the same time.',
    afterSeconds: 1,
  },
  idempotency_in_progress: {
    status: 409,
    category: 'conflict',
    strategy: 'same_key',
    title: 'A request with this key is still at work.',
    afterSeconds: 1,
  },
  idempotency_key_expired: { status: 409, ...CONFLICT, title: 'The key was used, too long ago to replay.' },
  version_retired: { status: 410, ...INVALID, title: 'This API-Version is no longer served.' },
  export_expired: { status: 410, ...NOT_FOUND, title: 'The file of this export is no longer kept.' },
  precondition_failed: { status: 412, ...CONFLICT, title: 'The resource is at another version.' },
  payload_too_large: { status: 413, ...INVALID, title: 'The body is too large.' },
  uri_too_long: { status: 414, ...INVALID, title: 'The URL is too long.' },
  unsupported_media_type: { status: 415, ...INVALID, title: 'The body has a media type that is not taken here.' },
  range_not_satisfiable: { status: 416, ...INVALID, title: 'The representation has no such range of bytes.' },
  idempotency_key_reused: { status: 422, ...INVALID, title: 'The key was used for another request.' },
  precondition_required: {
    status: 428,
    category: 'invalid_input',
    strategy: 'refresh_and_resubmit',
    title: 'The If-Match header is required.',
  },
  rate_limited: { status: 429, ...CAPACITY, title: 'Too many requests.', afterSeconds: 1 },
  quota_exceeded: { status: 429, ...CAPACITY, title: 'The quota is used up.', afterSeconds: 60 },
  headers_too_large: { status: 431, ...INVALID, title: 'The headers are too large.' },
  internal_error: {
    status: 500,
    category: 'internal',
    strategy: 'query_state_or_same_key',
    title: 'Something broke on our side.',
  },
  dependency_unavailable: {
    status: 503,
    ...DEPENDENCY,
    title: 'A part that this needs does not answer.',
    afterSeconds: 1,
  },
  overloaded: { status: 503, ...CAPACITY, title: 'The service is overloaded.', afterSeconds: 1 },
  shutting_down: { status: 503, ...CAPACITY, title: 'The service is shutting down.', afterSeconds: 1 },
  projection_behind: {
    status: 503,
    ...DEPENDENCY,
    title: 'The list has not caught up with that position.',
    afterSeconds: 1,
  },
  deadline_exceeded: {
    status: 504,
    category: 'dependency',
    strategy: 'query_state_or_same_key',
    title: 'No answer in time; the effect is unknown.',
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
}

export type ProblemExtras = {
  readonly detail?: string
  readonly errors?: readonly Violation[]
  readonly headers?: Readonly<Record<string, string>>
  /** Retry-After in place of the usual one of the catalogue. */
  readonly afterSeconds?: number
  /** The scopes that would have sufficed, for WWW-Authenticate. */
  readonly scopes?: readonly string[]
  /** The correlation id of the request that was refused first, for the replay of a recorded refusal. */
  readonly correlationId?: string
}

/**
 * Thrown anywhere at the HTTP boundary and sent as a problem document. Inner layers return rejections as values
 * instead.
 */
export class Problem extends Error {
  readonly code: ErrorCode
  readonly extras: ProblemExtras

  constructor(code: ErrorCode, extras: ProblemExtras = {}) {
    super(`${code}: ${extras.detail ?? PROBLEMS[code].title}`)
    this.name = 'Problem'
    this.code = code
    this.extras = extras
  }
}

/** The problem of a caller who lacks these scopes. */
export const insufficientScope = (scopes: readonly string[], detail: string): Problem =>
  new Problem('insufficient_scope', { detail, scopes })

const NOT_RETRYABLE: readonly RetryStrategy[] = ['do_not_retry', 'reauthenticate', 'refresh_and_resubmit']

export const statusOf = (code: ErrorCode): number => PROBLEMS[code].status

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(PROBLEMS, code)

export const retryOf = (
  code: ErrorCode,
  { afterSeconds: knownSeconds }: ProblemExtras = {},
): ProblemDocument['retry'] => {
  const { strategy, afterSeconds: usualSeconds }: Entry = PROBLEMS[code]
  const afterSeconds = knownSeconds ?? usualSeconds
  const retryable = !NOT_RETRYABLE.includes(strategy)
  return afterSeconds === undefined ? { retryable, strategy } : { retryable, strategy, after_seconds: afterSeconds }
}

const ERRORS_LISTED_MAX = 20
const POINTER_CHARS_MAX = 256

/** The first violations and how many there are in all, so that a response does not grow with its request. */
const firstViolations = (errors: readonly Violation[]): { errors: readonly Violation[]; total?: string } => {
  const first = errors.slice(0, ERRORS_LISTED_MAX).map(error => ({ ...error, pointer: shortened(error.pointer) }))
  if (errors.length <= ERRORS_LISTED_MAX) return { errors: first }
  return { errors: first, total: `There are ${errors.length} violations; the first ${ERRORS_LISTED_MAX} are listed.` }
}

const shortened = (pointer: string): string =>
  pointer.length <= POINTER_CHARS_MAX ? pointer : `${pointer.slice(0, POINTER_CHARS_MAX)}…`

export const documentOf = (
  { code, extras }: Problem,
  { instance, correlationId }: { instance: string; correlationId: string },
): ProblemDocument => {
  const { status, category, title } = PROBLEMS[code]
  const { errors, total } = extras.errors ? firstViolations(extras.errors) : {}
  return {
    type: `/problems/${code}`,
    title,
    status,
    detail: [extras.detail ?? title, total].filter(Boolean).join(' '),
    instance,
    code,
    category,
    correlation_id: extras.correlationId ?? correlationId,
    retry: retryOf(code, extras),
    ...(errors ? { errors } : {}),
  }
}
