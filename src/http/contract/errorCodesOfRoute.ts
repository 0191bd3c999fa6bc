import type { ErrorCode } from '../problems/problemCatalogue.ts'
import type { AnyRoute } from '../route.ts'

/** The error codes that an endpoint can return, as far as they follow from its declaration. */

/** Errors that any endpoint can return: load shedding, malformed HTTP, internal faults. */
const COMMON: readonly ErrorCode[] = [
  'bad_request_framing',
  'uri_too_long',
  'headers_too_large',
  'multiple_credentials',
  'unsupported_api_version',
  'version_retired',
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
/** Whether an API key may ever use this endpoint: API keys only read. */
export const isForApiKeys = ({ scope, kinds }: AnyRoute): boolean =>
  scope.endsWith(':read') && (kinds === undefined || kinds.includes('api_key'))

/** Every error code that the endpoint can return, each once. */
export const errorsOf = (route: AnyRoute): readonly ErrorCode[] => [
  ...new Set<ErrorCode>([
    ...COMMON,
    ...(route.underAnyLoad ? [] : UNDER_LOAD),
    ...(route.scope === 'none' ? [] : AUTHENTICATED),
    // The quota of API keys counts wherever one is sent, also where none is permitted, since 429 comes before 403.
    ...(route.scope === 'none' ? [] : (['quota_exceeded'] as const)),
    ...(route.scope === 'none' || isForApiKeys(route) ? [] : NOT_FOR_API_KEYS),
    ...(route.kinds ? NOT_FOR_API_KEYS : []),
    ...(route.method === 'GET' ? [] : (['deadline_exceeded'] as const)),
    // With If-Match there is no retry: the loser of a race gets 412.
    ...(route.method === 'GET' || route.ifMatch ? [] : (['concurrent_modification'] as const)),
    ...(route.body ? WITH_BODY : []),
    ...(route.query ? (['validation_failed'] as const) : []),
    ...(route.params ? (['resource_not_found'] as const) : []),
    ...(route.isList ? (['precondition_invalid'] as const) : []),
    ...(route.ifMatch ? (['precondition_required', 'precondition_failed', 'precondition_invalid'] as const) : []),
    ...(route.idempotencyKey === 'required' ? (['idempotency_key_missing'] as const) : []),
    ...(route.idempotencyKey
      ? (['idempotency_key_invalid', 'idempotency_key_reused', 'idempotency_key_expired'] as const)
      : []),
    ...route.errors,
  ]),
]
