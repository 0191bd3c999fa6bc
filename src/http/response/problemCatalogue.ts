/** Every way in which a request can fail: the one table. Documents, headers, tests and the contract's diff come from it. */

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
 * `same_request`: as it is, after the pause. `same_key`: only with the same Idempotency-Key. `query_state_or_same_key`:
 * the effect is unknown; look, or repeat with the same key. The others need another request, or none.
 */
export type RetryStrategy =
  | 'do_not_retry'
  | 'reauthenticate'
  | 'refresh_and_resubmit'
  | 'same_request'
  | 'same_key'
  | 'query_state_or_same_key'

type Entry = readonly [
  status: number,
  category: Category,
  strategy: RetryStrategy,
  title: string,
  afterSeconds?: number,
]

export const PROBLEMS = {
  invalid_json: [400, 'invalid_input', 'do_not_retry', 'The body is not JSON.'],
  duplicate_json_key: [400, 'invalid_input', 'do_not_retry', 'The body names a member twice.'],
  json_limits_exceeded: [400, 'invalid_input', 'do_not_retry', 'The body is nested too deep or has too many members.'],
  validation_failed: [400, 'invalid_input', 'do_not_retry', 'The request does not fit its schema.'],
  unknown_parameter: [400, 'invalid_input', 'do_not_retry', 'The query has a parameter that does not exist.'],
  cursor_invalid: [400, 'invalid_input', 'do_not_retry', 'The cursor was not issued for this list.'],
  cursor_expired: [400, 'invalid_input', 'do_not_retry', 'The cursor is too old; begin the list again.'],
  idempotency_key_missing: [400, 'invalid_input', 'do_not_retry', 'The Idempotency-Key header is required.'],
  idempotency_key_invalid: [400, 'invalid_input', 'do_not_retry', 'The Idempotency-Key header is malformed.'],
  precondition_invalid: [400, 'invalid_input', 'do_not_retry', 'The conditional header is malformed.'],
  unsupported_api_version: [400, 'invalid_input', 'do_not_retry', 'No contract has this API-Version.'],
  multiple_credentials: [400, 'invalid_input', 'do_not_retry', 'The request carries more than one credential.'],
  bad_request_framing: [400, 'invalid_input', 'do_not_retry', 'The request is not well-formed HTTP.'],
  unauthenticated: [401, 'authentication', 'reauthenticate', 'A credential is required.'],
  token_invalid: [401, 'authentication', 'reauthenticate', 'The access token is not valid here.'],
  token_expired: [401, 'authentication', 'reauthenticate', 'The access token has expired.'],
  api_key_invalid: [401, 'authentication', 'reauthenticate', 'The API key is not valid.'],
  insufficient_scope: [403, 'authorization', 'do_not_retry', 'The credential lacks the scope for this operation.'],
  credential_not_permitted: [403, 'authorization', 'do_not_retry', 'This kind of credential may not do this.'],
  policy_denied: [403, 'authorization', 'do_not_retry', 'The policy of the tenant forbids this.'],
  resource_not_found: [404, 'not_found', 'do_not_retry', 'There is no such resource.'],
  route_not_found: [404, 'not_found', 'do_not_retry', 'There is no such path.'],
  method_not_allowed: [405, 'invalid_input', 'do_not_retry', 'The path does not have this method.'],
  not_acceptable: [406, 'invalid_input', 'do_not_retry', 'No representation has an acceptable media type.'],
  request_timeout: [408, 'capacity', 'same_request', 'The request did not arrive in time.', 1],
  invoice_state_conflict: [409, 'conflict', 'refresh_and_resubmit', 'The state of the invoice does not permit this.'],
  order_state_conflict: [409, 'conflict', 'refresh_and_resubmit', 'The state of the order does not permit this.'],
  payment_state_conflict: [409, 'conflict', 'refresh_and_resubmit', 'The state of the payment does not permit this.'],
  order_has_invoices: [409, 'conflict', 'refresh_and_resubmit', 'The order has a live invoice.'],
  payment_not_allowed: [409, 'conflict', 'refresh_and_resubmit', 'The invoice does not take this payment.'],
  payment_exceeds_due: [409, 'conflict', 'refresh_and_resubmit', 'The amount exceeds what is still due.'],
  payment_reference_conflict: [409, 'conflict', 'refresh_and_resubmit', 'Another payment has this reference.'],
  concurrent_modification: [409, 'conflict', 'same_request', 'Others changed the resource at the same time.', 1],
  idempotency_in_progress: [409, 'conflict', 'same_key', 'A request with this key is still at work.', 1],
  idempotency_key_expired: [409, 'conflict', 'refresh_and_resubmit', 'The key was used, too long ago to replay.'],
  version_retired: [410, 'invalid_input', 'do_not_retry', 'This API-Version is no longer served.'],
  export_expired: [410, 'not_found', 'do_not_retry', 'The file of this export is no longer kept.'],
  precondition_failed: [412, 'conflict', 'refresh_and_resubmit', 'The resource is at another version.'],
  payload_too_large: [413, 'invalid_input', 'do_not_retry', 'The body is too large.'],
  uri_too_long: [414, 'invalid_input', 'do_not_retry', 'The URL is too long.'],
  unsupported_media_type: [415, 'invalid_input', 'do_not_retry', 'The body has a media type that is not taken here.'],
  range_not_satisfiable: [416, 'invalid_input', 'do_not_retry', 'The representation has no such range of bytes.'],
  idempotency_key_reused: [422, 'invalid_input', 'do_not_retry', 'The key was used for another request.'],
  precondition_required: [428, 'invalid_input', 'refresh_and_resubmit', 'The If-Match header is required.'],
  rate_limited: [429, 'capacity', 'same_request', 'Too many requests.', 1],
  quota_exceeded: [429, 'capacity', 'same_request', 'The quota is used up.', 60],
  headers_too_large: [431, 'invalid_input', 'do_not_retry', 'The headers are too large.'],
  internal_error: [500, 'internal', 'query_state_or_same_key', 'Something broke on our side.'],
  dependency_unavailable: [503, 'dependency', 'same_request', 'A part that this needs does not answer.', 1],
  overloaded: [503, 'capacity', 'same_request', 'The service is overloaded.', 1],
  shutting_down: [503, 'capacity', 'same_request', 'The service is shutting down.', 1],
  projection_behind: [503, 'dependency', 'same_request', 'The list has not caught up with that position.', 1],
  deadline_exceeded: [504, 'dependency', 'query_state_or_same_key', 'No answer in time; the effect is unknown.', 1],
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
  /** When a retry is worth it, if that is known better than the table knows it. */
  readonly afterSeconds?: number
  /** The scopes that would have sufficed, for WWW-Authenticate. */
  readonly scopes?: readonly string[]
  /** A refusal that was recorded is told again in the words of the first time. */
  readonly correlationId?: string
}

/** Thrown anywhere at the boundary; the app turns it into a response. Not for the inside, where refusals are values. */
export class Problem extends Error {
  readonly code: ErrorCode
  readonly extras: ProblemExtras

  constructor(code: ErrorCode, extras: ProblemExtras = {}) {
    super(code)
    this.name = 'Problem'
    this.code = code
    this.extras = extras
  }
}

/** The refusal of a caller who lacks these scopes. */
export const insufficientScope = (scopes: readonly string[], detail: string): Problem =>
  new Problem('insufficient_scope', { detail, scopes })

const NOT_RETRYABLE: readonly RetryStrategy[] = ['do_not_retry', 'reauthenticate', 'refresh_and_resubmit']

export const statusOf = (code: ErrorCode): number => PROBLEMS[code][0]

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(PROBLEMS, code)

export const retryOf = (code: ErrorCode, { afterSeconds: known }: ProblemExtras = {}): ProblemDocument['retry'] => {
  const [, , strategy, , usual]: Entry = PROBLEMS[code]
  const afterSeconds = known ?? usual
  const retryable = !NOT_RETRYABLE.includes(strategy)
  return afterSeconds === undefined ? { retryable, strategy } : { retryable, strategy, after_seconds: afterSeconds }
}

const ERRORS_LISTED_MAX = 20
const POINTER_CHARS_MAX = 256

/** The first violations, and how many there are in all: an answer never grows with what was sent. */
const listed = (errors: readonly Violation[]): { errors: readonly Violation[]; total?: string } => {
  const first = errors.slice(0, ERRORS_LISTED_MAX).map(one => ({ ...one, pointer: shortened(one.pointer) }))
  if (errors.length <= ERRORS_LISTED_MAX) return { errors: first }
  return { errors: first, total: `There are ${errors.length} violations; the first ${ERRORS_LISTED_MAX} are listed.` }
}

const shortened = (pointer: string): string =>
  pointer.length <= POINTER_CHARS_MAX ? pointer : `${pointer.slice(0, POINTER_CHARS_MAX)}…`

export const documentOf = (
  { code, extras }: Problem,
  { instance, correlationId }: { instance: string; correlationId: string },
): ProblemDocument => {
  const [status, category, , title]: Entry = PROBLEMS[code]
  const { errors, total } = extras.errors ? listed(extras.errors) : {}
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
