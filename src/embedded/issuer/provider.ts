import { randomBytes } from 'node:crypto'
import { type ClientMetadata, type Configuration, errors, Provider, type ResourceServer } from 'oidc-provider'
import { SCOPES } from '../../identity/principal.ts'
import type { DevClient } from './clients.ts'
import { USER_LIFETIME_SECONDS, WORKLOAD_LIFETIME_SECONDS } from './devToken.ts'
import { createMemoryStore } from './memoryStore.ts'
import type { SigningKey } from './signingKey.ts'

const CODE_LIFETIME_SECONDS = 60
const LOGIN_LIFETIME_SECONDS = 600
const SESSION_LIFETIME_SECONDS = 28_800
const CLOCK_TOLERANCE_SECONDS = 5
const COOKIE_KEY_BYTES = 32

export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const
export const CLIENT_ASSERTION_ALGORITHMS = ['ES256', 'RS256'] as const

/** Where the provider answers, below the issuer's own path. */
export const ROUTES = { token: '/token', jwks: '/jwks' } as const

export type ProviderOptions = {
  readonly issuer: string
  readonly audience: string
  readonly key: SigningKey
  readonly clients: readonly DevClient[]
}

const toMetadata = (client: DevClient): ClientMetadata => ({
  ...client,
  grant_types: ['client_credentials'],
  response_types: [],
  redirect_uris: [],
  token_endpoint_auth_method: 'jwks' in client ? 'private_key_jwt' : 'client_secret_basic',
})

/** A resource indicator (RFC 8707) must be a URI, an audience need not be one. */
const resourceOf = (audience: string): string =>
  URL.canParse(audience) && !audience.includes('#') ? audience : `urn:audience:${encodeURIComponent(audience)}`

const resourceServer = (audience: string): ResourceServer => ({
  audience,
  scope: SCOPES.join(' '),
  accessTokenFormat: 'jwt',
  jwt: { sign: { alg: 'ES256' } },
})

/** Every grant has one resource, this service: a client that asks for another is refused, one that asks for none gets it. */
const resourceIndicators = (audience: string) => ({
  enabled: true,
  defaultResource: () => resourceOf(audience),
  useGrantedResource: () => true,
  getResourceServerInfo: (_: unknown, resource: string): ResourceServer => {
    if (resource !== resourceOf(audience) && resource !== audience) throw new errors.InvalidTarget()
    return resourceServer(audience)
  },
})

const ttl: Configuration['ttl'] = {
  AccessToken: USER_LIFETIME_SECONDS,
  AuthorizationCode: CODE_LIFETIME_SECONDS,
  BackchannelAuthenticationRequest: LOGIN_LIFETIME_SECONDS,
  ClientCredentials: WORKLOAD_LIFETIME_SECONDS,
  DeviceCode: LOGIN_LIFETIME_SECONDS,
  Grant: SESSION_LIFETIME_SECONDS,
  IdToken: USER_LIFETIME_SECONDS,
  Interaction: LOGIN_LIFETIME_SECONDS,
  RefreshToken: SESSION_LIFETIME_SECONDS,
  Session: SESSION_LIFETIME_SECONDS,
}

/**
 * The tenant comes from the client's registration, never from the request. A token without scope would be refused
 * everywhere, so the client learns it here (RFC 6749, section 3.3) and not from a 401 later.
 */
const extraTokenClaims: Configuration['extraTokenClaims'] = (_, token) => {
  if (!token.scope) throw new errors.InvalidScope('the scopes that the token is for must be named', '')
  return { tenant: token.client?.['tenant'] }
}

const configure = ({ audience, key, clients }: ProviderOptions): Configuration => ({
  adapter: createMemoryStore(),
  jwks: { keys: [{ ...key }] },
  clients: clients.map(toMetadata),
  clientAuthMethods: [...CLIENT_AUTH_METHODS],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  clockTolerance: CLOCK_TOLERANCE_SECONDS,
  cookies: { keys: [randomBytes(COOKIE_KEY_BYTES).toString('base64url')] },
  enabledJWA: {
    clientAuthSigningAlgValues: [...CLIENT_ASSERTION_ALGORITHMS],
    idTokenSigningAlgValues: ['ES256'],
  },
  extraClientMetadata: { properties: ['tenant'] },
  extraTokenClaims,
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    resourceIndicators: resourceIndicators(audience),
    rpInitiatedLogout: { enabled: false },
    userinfo: { enabled: false },
  },
  clientBasedCORS: () => false,
  pkce: { required: () => true },
  // An OAuth client reads JSON, whatever it says that it accepts; there is no page of the issuer to see.
  renderError: (ctx, out) => {
    ctx.type = 'json'
    ctx.body = out
  },
  responseTypes: ['code'],
  routes: { ...ROUTES },
  scopes: [...SCOPES],
  ttl,
})

/** The authorization server itself: oidc-provider, set up for the client credentials grant. */
export const createProvider = (options: ProviderOptions): Provider => new Provider(options.issuer, configure(options))
