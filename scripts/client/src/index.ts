import { API_VERSION } from './contract.ts'
import { Api } from './generated.ts'
import { createRetryingFetch, type RetryOptions } from './retry.ts'

/**
 * The client of the payment ledger: the generated endpoints, with credentials, the version of the contract, and
 * retries.
 */

export * from './generated.ts'
export { API_VERSION, RETRY_TABLE } from './contract.ts'
export { createRetryingFetch, type RetryOptions, type Surroundings } from './retry.ts'

export type LedgerClientOptions = {
  /** `https://ledger.example` */
  readonly baseUrl: string
  /** A current access token, asked for before each request. */
  readonly token: () => string | Promise<string>
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

export const createLedgerClient = ({ baseUrl, token, retry, fetch: send }: LedgerClientOptions): Api<unknown> =>
  new Api<unknown>({
    baseUrl,
    customFetch: withPatchType(send ?? createRetryingFetch(retry)),
    baseApiParams: { secure: true, headers: { 'API-Version': API_VERSION } },
    securityWorker: async () => ({ headers: { authorization: `Bearer ${await token()}` } }),
  })
