import { z } from 'zod'
import { TEXT_PAGE_POLICY } from '../response/contentSecurityPolicy.ts'
import {
  type ErrorCode,
  isErrorCode,
  PROBLEMS,
  Problem,
  retryOf,
  type RetryStrategy,
} from '../problems/problemCatalogue.ts'
import { type AnyRoute, route } from '../route.ts'

/** The pages that the `type` of a problem links to: one for each error code, made from the problem catalogue. */

const ADVICE: Readonly<Record<RetryStrategy, string>> = {
  do_not_retry: 'Correct the request. Sent again unchanged, it would fail again.',
  reauthenticate: 'Get a new credential, then send the request again.',
  refresh_and_resubmit: 'Read the current state, then decide whether to send a new request.',
  same_request: 'Send the same request again after the pause in Retry-After, with backoff and jitter.',
  same_key: 'Send the same request again with the same Idempotency-Key after the pause in Retry-After.',
  query_state_or_same_key:
    'The effect is unknown. Read the state, or send the same request again with the same Idempotency-Key; never with a new one.',
}

/** The advice of codes for which their retry strategy says too little. */
const ADVICE_OF_CODE: Readonly<Partial<Record<ErrorCode, string>>> = {
  insufficient_scope:
    'Get an access token with the scope that the detail and the header WWW-Authenticate name, and send the request again. ' +
    'Request it from the authorization server in <code>/.well-known/oauth-protected-resource</code>, with the scope in its parameter <code>scope</code>; ' +
    'with the embedded issuer: <code>npm run ledger -- token --tenant … --subject … --scope "orders:read orders:write"</code>. ' +
    'An API key gets its scopes when it is issued.',
  idempotency_key_missing:
    'Choose a unique value for each intent, such as a UUID, and store it before the first attempt. Retry with the same value.',
  idempotency_key_reused:
    'Use a new key for a new intent, or repeat the first request unchanged. A key belongs to tenant, subject, client and operation: ' +
    'retry with a credential of the same client.',
  precondition_failed:
    'The header ETag has the current version. Read the resource again, decide whether the change is still wanted, and send the new ETag in If-Match.',
  unsupported_api_version:
    'Send one of the versions that the detail lists in API-Version. <code>/docs</code> describes each.',
  idempotency_key_expired:
    'The first request with this key is too old to be replayed. The header Location names the resource that it created: read it before you decide on a new request.',
}

const pageOf = (code: ErrorCode): string => {
  const { status, category, strategy, title } = PROBLEMS[code]
  const { after_seconds } = retryOf(code)
  const pause = after_seconds === undefined ? '' : `<dt>Retry-After</dt><dd>${after_seconds} s</dd>`
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>${code}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}
dt{font-weight:600;margin-top:.75rem}dd{margin:0}code{font-size:1.1em}</style>
<h1><code>${code}</code></h1><p>${title}</p>
<dl><dt>Status</dt><dd>${status}</dd><dt>Category</dt><dd>${category}</dd>
<dt>What to do</dt><dd>${ADVICE_OF_CODE[code] ?? ADVICE[strategy]}</dd><dt>Retry strategy</dt><dd><code>${strategy}</code></dd>${pause}</dl>
</html>
`
}

const readProblem = route({
  method: 'GET',
  path: '/problems/{code}',
  operationId: 'read_problem',
  summary: 'Read the page of an error code: its meaning and its recovery',
  tag: 'Contract',
  scope: 'none',
  rateClass: 'default',
  offers: ['text/html'],
  params: z.object({ code: z.string().refine(isErrorCode) }),
  responses: { 200: { description: 'The page as HTML.', schema: z.string(), contentType: 'text/html' } },
  errors: [],
  handler: async ({ params: { code } }) => {
    if (!isErrorCode(code)) throw new Problem('resource_not_found')
    const headers = {
      'Cache-Control': 'public, max-age=3600',
      'Content-Security-Policy': TEXT_PAGE_POLICY,
    }
    return { status: 200, body: pageOf(code), contentType: 'text/html; charset=utf-8', headers }
  },
})

export const problemRoutes: readonly AnyRoute[] = [readProblem]
