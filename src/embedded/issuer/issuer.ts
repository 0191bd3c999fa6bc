import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import { createRevocations, type Revocations } from '../../identity/revocations.ts'
import type { Database } from '../../ports.ts'
import { createAdapters } from './oidcAdapters.ts'
import { openClients } from './clients.ts'
import { loadCookieKey } from './cookieKey.ts'
import { openDatabaseLoginThrottle } from './databaseLoginThrottle.ts'
import { openDatabaseRecords } from './databaseRecords.ts'
import { type DevGrant, signDevToken } from './devToken.ts'
import { answerFailures } from './errorResponses.ts'
import { serveInteraction } from './interactions.ts'
import { createMemoryLoginThrottle } from './loginThrottle.ts'
import { createMemoryRecords } from './memoryRecords.ts'
import { describeIssuer, type IssuerMetadata } from './metadata.ts'
import { createProvider, ROUTES } from './provider.ts'
import { openKeyRing, type PublicKey, publishedKeys, type SigningKey } from './signingKey.ts'
import { revokeAccessTokens } from './tokenRevocation.ts'
import { openUsers } from './users.ts'

/** The embedded issuer: keys, clients, users, the provider and its pages as one request handler. */

export { DEFAULT_TENANTS } from './clients.ts'
export { CLI_CLIENT, type DevGrant, mintDevToken } from './devToken.ts'
export type { IssuerMetadata } from './metadata.ts'

/** The time for which verifiers may cache the key set; well below the 60 s after which a removed key is refused. */
const JWKS_MAX_AGE_SECONDS = 15

export type IssuerOptions = {
  /** The issuer's URL. The handler is mounted at its path: `http://localhost:8080/oauth`. */
  readonly issuer: string
  readonly audience: string
  /** The base URL of the service, which clients name as `resource` (RFC 8707). The issuer's origin by default. */
  readonly resource?: string
  readonly dataDir: string
  /** Stores codes, sessions, refresh tokens and failed logins. Without it they are in memory until the process ends. */
  readonly database?: Database
  /** Receives revocations; the API's token verifier reads the same list. */
  readonly revocations?: Pick<Revocations, 'revoke'>
  /** The address of a client; that of the TCP peer by default. */
  readonly addressOf?: (request: IncomingMessage) => string
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
   * Serves login, tokens, revocation and keys below the mount path and calls `next` for other paths, with an Error that
   * has `allow` if the path has other methods. It reads request bodies itself, so it must be mounted before any body
   * parser.
   */
  readonly handler: IssuerHandler
  readonly metadata: IssuerMetadata
  /** The present public keys, for a verifier in the same process. */
  readonly jwks: () => Promise<KeySet>
  readonly mintToken: (grant: DevGrant) => Promise<string>
}

type Serve = (request: IncomingMessage, response: ServerResponse) => unknown

const RESUME = /^\/auth\/[A-Za-z0-9_-]{1,64}$/

/** The methods of the enabled paths; undefined for others. The provider has more routes than the contract. */
const methodsOf = (path: string): readonly string[] | undefined => {
  // OPTIONS is the CORS preflight of browser applications.
  if (path === ROUTES.token || path === ROUTES.revocation) return ['POST', 'OPTIONS']
  if (path === ROUTES.jwks) return ['GET', 'HEAD']
  return path === ROUTES.authorization || RESUME.test(path) ? ['GET'] : undefined
}

class MethodNotAllowed extends Error {
  readonly allow: string

  constructor(methods: readonly string[]) {
    super('The path does not have this method.')
    this.name = 'MethodNotAllowed'
    this.allow = methods.join(', ')
  }
}

const pathOf = (request: IncomingMessage): string => (request.url ?? '').split('?', 1)[0] ?? ''

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

/** The provider for the present signing key. It has no state of its own, so it can be replaced at any time. */
const followKey = (key: () => Promise<SigningKey>, open: (key: SigningKey) => Provider) => {
  let current: { readonly kid: string; readonly provider: Provider; readonly serve: Serve } | undefined
  return async () => {
    const signing = await key()
    if (current?.kid !== signing.kid) {
      const provider = open(signing)
      current = { kid: signing.kid, provider, serve: provider.callback() }
    }
    return current
  }
}

/**
 * Opens the embedded issuer on its stored keys, clients and users, which are created at first use and read again when
 * they change. Throws a StartupError if they are invalid. Long because it wires every part of the issuer once.
 */
export const createIssuer = async (options: IssuerOptions): Promise<Issuer> => {
  const { issuer, audience, dataDir, database, onError = () => {} } = options
  const { resource = new URL(issuer).origin, addressOf = peerOf } = options
  assertCanonicalIssuer(issuer)
  const { revoke } = options.revocations ?? createRevocations()
  const [ring, clients, users, cookieKey, records, throttle] = await Promise.all([
    openKeyRing(dataDir, onError),
    openClients(dataDir, onError),
    openUsers(dataDir, onError),
    loadCookieKey(dataDir),
    database ? openDatabaseRecords(database) : createMemoryRecords(),
    database ? openDatabaseLoginThrottle(database) : createMemoryLoginThrottle(),
  ])
  const adapter = createAdapters({ records, clients: clients.current, revoke })
  const keys = async (): Promise<readonly PublicKey[]> => publishedKeys(await ring.current())
  const current = followKey(
    async () => (await ring.current()).signing,
    key => {
      const provider = createProvider({ issuer, audience, resource, key, adapter, users: users.current, cookieKey })
      answerFailures(provider, onError)
      // The library's types lack this event of Koa. With a listener, Koa does not print the error itself.
      const koa: EventEmitter = provider
      koa.on('error', onError)
      revokeAccessTokens(provider, { issuer, keys, revoke })
      return provider
    },
  )
  // An invalid key is reported at startup instead of by the first request.
  await current()
  const pages = { issuer, resource, users: users.current, formKey: cookieKey, throttle, addressOf, onError }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    const { provider, serve } = await current()
    const path = pathOf(request)
    const methods = methodsOf(path)
    if (methods === undefined) return await serveInteraction(request, response, { ...pages, provider })
    if (!methods.includes(request.method ?? '')) throw new MethodNotAllowed(methods)
    if (path === ROUTES.jwks) {
      sendKeys(response, { keys: await keys() })
      return true
    }
    response.setHeader('cache-control', 'no-store')
    response.setHeader('x-content-type-options', 'nosniff')
    void serve(request, response)
    return true
  }

  const handler: IssuerHandler = (request, response, next) => {
    const fail = (error: unknown): void => {
      if (!(error instanceof MethodNotAllowed)) onError(error)
      next(error)
    }
    void serve(request, response).then(isServed => (isServed ? undefined : next()), fail)
  }

  return {
    handler,
    metadata: describeIssuer(issuer),
    jwks: async () => ({ keys: await keys() }),
    mintToken: async grant => signDevToken((await ring.current()).signing, { issuer, audience }, grant),
  }
}
