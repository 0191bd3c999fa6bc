import type { IncomingMessage, ServerResponse } from 'node:http'
import { importJWK } from 'jose'
import { createRevocations, type Revocations } from '../../identity/revocations.ts'
import type { Database } from '../../ports.ts'
import { openClients } from './clients.ts'
import { loadCookieKey } from './cookieKey.ts'
import { openDatabaseLoginThrottle } from './databaseLoginThrottle.ts'
import { openDatabaseRecords } from './databaseRecords.ts'
import { type DevGrant, signDevToken } from './devToken.ts'
import { createMemoryLoginThrottle } from './loginThrottle.ts'
import { createMemoryRecords } from './memoryRecords.ts'
import { ROUTES } from './endpoints.ts'
import { describeIssuer, type IssuerMetadata } from './metadata.ts'
import { openKeyRing, type PublicKey, publishedKeys } from './signingKey.ts'
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
    super('This path does not support this method.')
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

/** Runs `open` at the first call; a failed one is repeated by the next call. */
const whenUsed = <T>(open: () => Promise<T>): (() => Promise<T>) => {
  let opened: Promise<T> | undefined
  return () =>
    (opened ??= open().catch((error: unknown) => {
      opened = undefined
      throw error
    }))
}

/**
 * Opens the embedded issuer on its stored keys, clients and users, which are created at first use and read again when
 * they change. Throws a StartupError if they are invalid. oidc-provider is loaded by the first request that it serves,
 * since it is large, and tokens of the command line need none of it. Long because it wires every part of the issuer
 * once.
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
  /** The latest ones, because another process may have signed with a key that it has just read. */
  const keys = async (): Promise<readonly PublicKey[]> => publishedKeys(await ring.latest())
  // An invalid key is reported at startup instead of by the first request.
  await importJWK((await ring.current()).signing)
  const adapters = { records, clients: clients.current, revoke }
  const shared = { issuer, audience, resource, users: users.current, cookieKey, throttle, addressOf, onError }
  const server = whenUsed(async () => {
    const { createAuthorizationServer } = await import('./authorizationServer.ts')
    return createAuthorizationServer({
      ...shared,
      adapters,
      keys,
      signingKey: async () => (await ring.current()).signing,
    })
  })

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    const path = pathOf(request)
    const methods = methodsOf(path)
    if (methods === undefined) return (await server()).serveInteraction(request, response)
    if (!methods.includes(request.method ?? '')) throw new MethodNotAllowed(methods)
    if (path === ROUTES.jwks) {
      sendKeys(response, { keys: await keys() })
      return true
    }
    response.setHeader('cache-control', 'no-store')
    response.setHeader('x-content-type-options', 'nosniff')
    await (await server()).serve(request, response)
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
