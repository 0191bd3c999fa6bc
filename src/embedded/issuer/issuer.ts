import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SCOPES } from '../../identity/principal.ts'
import { loadClients } from './clients.ts'
import { type DevGrant, signDevToken } from './devToken.ts'
import { CLIENT_ASSERTION_ALGORITHMS, CLIENT_AUTH_METHODS, createProvider, ROUTES } from './provider.ts'
import { loadSigningKey, type PublicKey, publicPart } from './signingKey.ts'

export { DEFAULT_TENANTS } from './clients.ts'
export { CLI_CLIENT, type DevGrant, mintDevToken } from './devToken.ts'

/** Verifiers may keep the key set for this long; it must stay well below the 60 s in which a removed key stops. */
const JWKS_MAX_AGE_SECONDS = 15

export type IssuerOptions = {
  /** The issuer's URL. Its path is where the handler is mounted: `http://localhost:8080/oauth`. */
  readonly issuer: string
  readonly audience: string
  readonly dataDir: string
  /** Told of faults of the issuer itself, never of refused requests. */
  readonly onError?: (error: unknown) => void
}

/** RFC 8414, to be served at `/.well-known/oauth-authorization-server` and at the same with the issuer's path behind. */
export type IssuerMetadata = Readonly<Record<string, string | readonly string[]>>

export type IssuerHandler = (request: IncomingMessage, response: ServerResponse, next?: () => void) => void

export type Issuer = {
  /**
   * Serves `/token` and `/jwks` below the mount path and calls `next` for everything else, or answers 404 without it.
   * It reads request bodies itself, so it goes before any body parser.
   */
  readonly handler: IssuerHandler
  readonly metadata: IssuerMetadata
  /** The public key set, for a verifier in the same process. */
  readonly jwks: { readonly keys: readonly PublicKey[] }
  mintToken(grant: DevGrant): Promise<string>
}

const describe = (issuer: string): IssuerMetadata => ({
  issuer,
  token_endpoint: `${issuer}${ROUTES.token}`,
  jwks_uri: `${issuer}${ROUTES.jwks}`,
  scopes_supported: SCOPES,
  // Required by RFC 8414, and empty as long as there is no authorization endpoint.
  response_types_supported: [],
  grant_types_supported: ['client_credentials'],
  token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
  token_endpoint_auth_signing_alg_values_supported: CLIENT_ASSERTION_ALGORITHMS,
})

const cacheControlOf: Readonly<Record<string, string>> = {
  [ROUTES.token]: 'no-store',
  [ROUTES.jwks]: `public, max-age=${JWKS_MAX_AGE_SECONDS}`,
}

const pathOf = (request: IncomingMessage): string => (request.url ?? '').split('?', 1)[0] ?? ''

/** Only what is meant to be open is passed on: the provider has more routes than the contract. */
const openHandler =
  (serve: (request: IncomingMessage, response: ServerResponse) => unknown): IssuerHandler =>
  (request, response, next) => {
    const cacheControl = cacheControlOf[pathOf(request)]
    if (cacheControl !== undefined) {
      response.setHeader('cache-control', cacheControl)
      void serve(request, response)
    } else if (next) next()
    else response.writeHead(404, { 'cache-control': 'no-store' }).end()
  }

const refuseOddIssuer = (issuer: string): void => {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  // Tokens carry the issuer letter by letter, so there must be one way to write it.
  if (url?.href !== issuer || issuer.endsWith('/'))
    throw new TypeError('The issuer must be a URL without a slash at its end.')
}

/** Opens the dev issuer on its stored key and clients, which are made at first use. Throws a Refusal when they are unfit. */
export const createIssuer = async (options: IssuerOptions): Promise<Issuer> => {
  const { issuer, audience, dataDir, onError = () => {} } = options
  refuseOddIssuer(issuer)
  const [key, clients] = await Promise.all([loadSigningKey(dataDir), loadClients(dataDir)])
  const provider = createProvider({ issuer, audience, key, clients })
  provider.on('server_error', (_, error: unknown) => onError(error))
  // Its types do not know that Koa emits this one; with a listener of ours Koa does not print the error itself.
  const koa: EventEmitter = provider
  koa.on('error', onError)
  return {
    handler: openHandler(provider.callback()),
    metadata: describe(issuer),
    jwks: { keys: [publicPart(key)] },
    mintToken: grant => signDevToken(key, { issuer, audience }, grant),
  }
}
