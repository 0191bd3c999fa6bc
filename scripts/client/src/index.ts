import { API_VERSION } from './contract.ts'
import { Api, type FullRequestParams, type HttpResponse } from './generated.ts'
import { createRetryingFetch, type RetryOptions, type Token } from './retry.ts'

/**
 * The client of the payment ledger: the generated endpoints, with credentials, the version of the contract, and
 * retries.
 */

export * from './generated.ts'
export { API_VERSION, RETRY_TABLE } from './contract.ts'
export { createRetryingFetch, EffectUnknownError, type RetryOptions, type Surroundings, type Token } from './retry.ts'

export type LedgerClientOptions = {
  /** `https://ledger.example` */
  readonly baseUrl: string
  /** Asked for a current access token before each attempt. */
  readonly token: Token
  readonly retry?: RetryOptions
  /** In place of the retrying fetch. */
  readonly fetch?: typeof fetch
}

/** The generator sends each body that ends in +json as application/json; the body of a PATCH is a merge patch. */
const withPatchType =
  (send: typeof fetch): typeof fetch =>
  (input, init = {}) => {
    const headers = new Headers(init.headers)
    if (init.method === 'PATCH') headers.set('content-type', 'application/merge-patch+json')
    return send(input, { ...init, headers })
  }

type Failed = HttpResponse<unknown>

/** The generated endpoints parse no problem where a success has no JSON body. */
const rejectWithProblem = async (failure: unknown): Promise<never> => {
  const isUnparsed = failure instanceof Response && (failure as Failed).error === null
  if (isUnparsed && failure.headers.get('content-type')?.includes('json') === true)
    (failure as Failed).error = await failure
      .clone()
      .json()
      .catch(() => null)
  throw failure
}

export const createLedgerClient = ({ baseUrl, token, retry, fetch: send }: LedgerClientOptions): Api<unknown> => {
  const authorize = async () => ({ headers: { authorization: `Bearer ${await token()}` } })
  const api = new Api<unknown>({
    baseUrl,
    customFetch: withPatchType(send ?? createRetryingFetch({ ...retry, token })),
    baseApiParams: { headers: { 'API-Version': API_VERSION } },
    ...(send && { securityWorker: authorize }),
  })
  const { request } = api
  api.request = <T, E>(params: FullRequestParams) => request<T, E>(params).catch(rejectWithProblem)
  return api
}
