import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { importJWK } from 'jose'
import type { Serve } from './authorizationServer.ts'
import { openClients } from './clients.ts'
import { SCOPES } from '../../identity/principal.ts'
import {
  CLIENT_ASSERTION_ALGORITHMS,
  CLIENT_AUTH_METHODS,
  interactionOf,
  methodsOf,
  pathOf,
  ROUTES,
} from './endpoints.ts'
import { createLoginThrottle } from './loginThrottle.ts'
import { type KeyRing, openKeyRing, type PublicKey, publishedKeys } from './signingKey.ts'
import { openUsers } from './users.ts'
import type { WatchedFile } from './watchedFile.ts'

export { DEFAULT_TENANTS } from './clients.ts'
export { CLI_CLIENT, type DevGrant, mintDevToken } from './devToken.ts'

/** The time for which verifiers may cache the key set; well below the 60 s after which a removed key is refused. */
const JWKS_MAX_AGE_SECONDS = 15
const COOKIE_KEY_BYTES = 32

export type IssuerOptions = {
  /** The issuer's URL. The handler is mounted at its path: `http://localhost:8080/oauth`. */
  readonly issuer: string
  readonly audience: string
  /** The base URL of the service, which clients name as `resource` (RFC 8707). The issuer's origin by default. */
  readonly resource?: string
  readonly dataDir: string
  /** Adds a token or a grant to the list of revocations that the API's token verifier reads. */
  readonly revoke?: (name: string) => Promise<void>
  /** The address of a client; that of the TCP peer by default. */
  readonly addressOf?: (request: IncomingMessage) => string
  /** Sends requests to the process that has the issuer; without it that is this process. */
  readonly forward?: Serve | undefined
  /** Called with faults of the issuer itself, not with refused requests. */
  readonly onError?: (error: unknown) => void
}

export type IssuerHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

export type KeySet = { readonly keys: readonly PublicKey[] }

export type Issuer = {
  /**
   * Serves the issuer below its mount path, and calls `next` for other paths, with an Error that has `allow` for other
   * methods. Mount it before any body parser.
   */
  readonly handler: IssuerHandler
  readonly metadata: IssuerMetadata
  /** The present public keys, for a verifier in the same process. */
  readonly jwks: () => Promise<KeySet>
}

/** RFC 8414 metadata, served at `/.well-known/oauth-authorization-server`, also with the issuer's path appended. */
export type IssuerMetadata = Readonly<Record<string, string | boolean | readonly string[]>>

const describeIssuer = (issuer: string): IssuerMetadata => ({
  issuer,
  authorization_endpoint: `${issuer}${ROUTES.authorization}`,
  token_endpoint: `${issuer}${ROUTES.token}`,
  revocation_endpoint: `${issuer}${ROUTES.revocation}`,
  jwks_uri: `${issuer}${ROUTES.jwks}`,
  scopes_supported: ['openid', ...SCOPES],
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
  token_endpoint_auth_signing_alg_values_supported: CLIENT_ASSERTION_ALGORITHMS,
  revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
  revocation_endpoint_auth_signing_alg_values_supported: CLIENT_ASSERTION_ALGORITHMS,
  authorization_response_iss_parameter_supported: true,
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['ES256'],
})

class MethodNotAllowed extends Error {
  readonly allow: string

  constructor(methods: readonly string[]) {
    super('This path does not support this method.')
    this.name = 'MethodNotAllowed'
    this.allow = methods.join(', ')
  }
}

/** Whether the issuer serves the request. Throws MethodNotAllowed where its path has other methods. */
const isServed = (request: IncomingMessage): boolean => {
  const methods = methodsOf(pathOf(request))
  if (methods === undefined) return interactionOf(request) !== undefined
  if (!methods.includes(request.method ?? '')) throw new MethodNotAllowed(methods)
  return true
}

const sendKeys = (response: ServerResponse, keys: KeySet): void => {
  const headers = {
    'content-type': 'application/jwk-set+json; charset=utf-8',
    'cache-control': `public, max-age=${JWKS_MAX_AGE_SECONDS}`,
    'access-control-allow-origin': '*',
    'x-content-type-options': 'nosniff',
  }
  response.writeHead(200, headers).end(JSON.stringify(keys))
}

const peerOf = ({ socket }: IncomingMessage): string => socket.remoteAddress ?? ''

const assertCanonicalIssuer = (issuer: string): void => {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  // Tokens contain the issuer exactly, so only its canonical form is accepted.
  if (url?.href !== issuer || issuer.endsWith('/'))
    throw new TypeError('The issuer must be a URL without a slash at its end.')
}

/** The part of the issuer that only one process of a service may have: oidc-provider, log-ins and the login throttle. */
const openServer = async (
  options: IssuerOptions,
  ring: WatchedFile<KeyRing>,
  keys: () => Promise<readonly PublicKey[]>,
) => {
  const { issuer, audience, dataDir, onError = () => undefined } = options
  const { resource = new URL(issuer).origin, addressOf = peerOf, revoke = async () => undefined } = options
  const [clients, users] = await Promise.all([openClients(dataDir, onError), openUsers(dataDir, onError)])
  const wired = {
    ...{ issuer, audience, resource, addressOf, onError, keys },
    users,
    adapters: { clients, resource, revoke },
    signingKey: async () => (await ring()).signing,
    cookieKey: randomBytes(COOKIE_KEY_BYTES).toString('base64url'),
    throttle: createLoginThrottle(),
  }
  // oidc-provider is loaded by the first request that it serves, since it is large.
  let server: Promise<Serve> | undefined
  const load = async (): Promise<Serve> => (await import('./authorizationServer.ts')).createAuthorizationServer(wired)
  return async (request: IncomingMessage, response: ServerResponse) => (await (server ??= load()))(request, response)
}

/** Keys, clients and users are created at first use, and read again when they change. Throws a StartupError. */
export const createIssuer = async (options: IssuerOptions): Promise<Issuer> => {
  const { issuer, dataDir, forward, onError = () => undefined } = options
  assertCanonicalIssuer(issuer)
  const ring = await openKeyRing(dataDir, onError)
  const keys = async (): Promise<readonly PublicKey[]> => publishedKeys(await ring())
  // An invalid key is reported at startup instead of by the first request.
  await importJWK((await ring()).signing)
  const serve = forward ?? (await openServer(options, ring, keys))

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    if (!isServed(request)) return false
    if (pathOf(request) === ROUTES.jwks) sendKeys(response, { keys: await keys() })
    else await serve(request, response)
    return true
  }

  const handler: IssuerHandler = (request, response, next) => {
    const fail = (error: unknown): void => {
      if (!(error instanceof MethodNotAllowed)) onError(error)
      next(error)
    }
    void answer(request, response).then(isAnswered => (isAnswered ? undefined : next()), fail)
  }

  return { handler, metadata: describeIssuer(issuer), jwks: async () => ({ keys: await keys() }) }
}
