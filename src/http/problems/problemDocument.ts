import {
  type ErrorCode,
  type Problem,
  type ProblemDocument,
  PROBLEMS,
  retryOf,
  type RetryStrategy,
  shortened,
  type Violation,
} from './problemCatalogue.ts'

/** The body of a problem. A detail that was not given names the violations, or says what the caller does next. */

const ADVICE: Readonly<Record<RetryStrategy, string>> = {
  do_not_retry: 'Correct the request; sent again unchanged, it would fail again.',
  reauthenticate: 'Get a new credential, then send the request again.',
  refresh_and_resubmit: 'Read the current state, then decide whether to send a new request.',
  same_request: 'Send the same request again after the pause in Retry-After, with backoff and jitter.',
  same_key: 'Send the same request again with the same Idempotency-Key after the pause in Retry-After.',
  query_state_or_same_key:
    'The effect is unknown. Read the state, or send the same request again with the same Idempotency-Key; never with a new one.',
}

/** For the codes about which their retry strategy says too little. Code is in backquotes. */
const ADVICE_OF_CODE: Readonly<Partial<Record<ErrorCode, string>>> = {
  cursor_invalid:
    'A cursor is valid only for the path, the filters and the tenant that it was issued for. ' +
    'Send it unchanged with the same filters, or leave it out to start at the first page.',
  cursor_expired:
    'A cursor is valid for 3 days. Leave it out to start at the first page; `GET /events` can start at `from_position`.',
  idempotency_key_missing:
    'Generate a unique value for each intent, such as a UUID, and store it before the first attempt. ' +
    'Send it in Idempotency-Key with the first attempt and with every retry.',
  idempotency_key_reused:
    'Use a new key for a new intent, or repeat the first request unchanged. A key belongs to tenant, subject, client and operation: ' +
    'retry with a credential of the same client.',
  idempotency_key_expired:
    'The first request with this key is too old to be replayed. ' +
    'Read the resource that it created, which Location names, before you decide on a new request.',
  idempotency_in_progress:
    'Send the same request again with the same key after the pause in Retry-After, until you get the response of the first one.',
  unsupported_api_version: 'Send one of the versions that the detail lists in API-Version. `/docs` describes each.',
  multiple_credentials: 'Send one Authorization header, or one X-API-Key header.',
  unauthenticated: 'Send Authorization: Bearer with an access token, or X-API-Key with an API key.',
  token_invalid:
    'Get a new access token from the authorization server that `/.well-known/oauth-protected-resource` names, then send the request again.',
  token_expired: 'Get a new access token, then send the request again; a retry keeps its Idempotency-Key.',
  api_key_invalid:
    'The key is incomplete, unknown, revoked or expired. Compare it with the one that was issued, or have a new one issued.',
  insufficient_scope:
    'Get an access token with the scope that the detail and the header WWW-Authenticate name, and send the request again. ' +
    'Request it from the authorization server in `/.well-known/oauth-protected-resource`, with the scope in its parameter `scope`; ' +
    'with the embedded issuer: `npm run ledger -- token --tenant … --subject … --scope "orders:read orders:write"`. ' +
    'An API key gets its scopes when it is issued.',
  resource_not_found:
    'The tenant of this credential has no such resource. Check the id, and that the credential belongs to the right tenant.',
  route_not_found: 'Check the path: `GET /openapi.json` lists all of them, and `/docs` describes them.',
  payment_exceeds_due:
    'Pay at most `still_due`, with a new Idempotency-Key. `GET /invoices/{id}` shows what was paid and what is pending.',
  concurrent_modification:
    'Other requests changed the resource at the same time. Send the same request again after the pause in Retry-After.',
  export_expired: 'Create a new export: `POST /exports`.',
  precondition_failed:
    'The header ETag has the current version. Read the resource again, decide whether the change is still wanted, and send the new ETag in If-Match.',
  uri_too_long: 'Send fewer or shorter parameters.',
  headers_too_large: 'Send fewer or shorter headers.',
  internal_error:
    'Report the correlation_id to the operator of the service. The effect is unknown: read the state, ' +
    'or send the same request again with the same Idempotency-Key; never with a new one.',
  dependency_unavailable: 'This attempt had no effect. Send the same request again after the pause in Retry-After.',
  overloaded:
    'This attempt had no effect. Send the same request again after the pause in Retry-After, with backoff and jitter.',
  shutting_down:
    'This attempt had no effect. Send the same request again on a new connection after the pause in Retry-After.',
}

/** What the caller does next, in sentences. */
export const adviceOn = (code: ErrorCode): string => ADVICE_OF_CODE[code] ?? ADVICE[PROBLEMS[code].strategy]

const ERRORS_LISTED_MAX = 20
const ERRORS_IN_DETAIL_MAX = 3

/** The first violations, so a response does not grow with its request. */
const firstOf = (errors: readonly Violation[]): readonly Violation[] =>
  errors.slice(0, ERRORS_LISTED_MAX).map(error => ({ ...error, pointer: shortened(error.pointer) }))

/** The first violations in words, and how many there are where not all are listed or in words. */
const detailOf = (errors: readonly Violation[], listed: readonly Violation[]): string => {
  const inWords = listed
    .slice(0, ERRORS_IN_DETAIL_MAX)
    .map(({ pointer, detail }) => (pointer === '' ? detail : `${pointer}: ${detail}`))
    .join(' ')
  if (errors.length > listed.length)
    return `${inWords} There are ${errors.length} violations; the first ${listed.length} are listed.`
  return listed.length > ERRORS_IN_DETAIL_MAX ? `${inWords} The others are in errors.` : inWords
}

export const documentOf = (
  { code, extras }: Problem,
  { instance, correlationId }: { instance: string; correlationId: string },
): ProblemDocument => {
  const { status, category, title } = PROBLEMS[code]
  const { errors = [] } = extras
  const listed = firstOf(errors)
  return {
    type: `/problems/${code}`,
    title,
    status,
    detail: extras.detail ?? (detailOf(errors, listed) || adviceOn(code)),
    instance,
    code,
    category,
    correlation_id: extras.correlationId ?? correlationId,
    retry: retryOf(code, extras),
    ...extras.members,
    ...(listed.length > 0 ? { errors: listed } : {}),
  }
}
