import {
  type AccessToken,
  type Account,
  type AdapterFactory,
  type ClientMetadata,
  type Configuration,
  errors,
  interactionPolicy,
  type KoaContextWithOIDC,
  Provider,
  type ResourceServer,
} from 'oidc-provider'
import { SCOPES } from '../../identity/principal.ts'
import { isConsole, isForTenant } from './consoleClient.ts'
import { CLIENT_ASSERTION_ALGORITHMS, CLIENT_AUTH_METHODS, INTERACTION_ROUTE, ROUTES } from './endpoints.ts'
import { isPage } from './errorResponses.ts'
import { grantName } from './oidcAdapters.ts'
import {
  CODE_LIFETIME_SECONDS,
  INTERACTION_LIFETIME_SECONDS,
  SESSION_LIFETIME_SECONDS,
  USER_LIFETIME_SECONDS,
  WORKLOAD_LIFETIME_SECONDS,
} from './lifetimes.ts'
import { errorPage } from './pages/error.ts'
import { isLoopback } from './loopback.ts'
import { headersOf, textOf } from './pages/page.ts'
import type { SigningKey } from './signingKey.ts'
import type { DevUser } from './users.ts'

const CLOCK_TOLERANCE_SECONDS = 5

export type ProviderOptions = {
  readonly issuer: string
  readonly audience: string
  /** The resource of the tokens (RFC 8707): the base URL of the service. */
  readonly resource: string
  readonly key: SigningKey
  readonly adapter: AdapterFactory
  readonly users: () => Promise<readonly DevUser[]>
  readonly cookieKey: string
}

/** The accepted spellings of the resource: some URL libraries append a slash to an origin. */
export const resourceSpellings = (resource: string): readonly string[] => [resource, `${resource}/`]

const setOf = (scope: unknown): ReadonlySet<string> => new Set(typeof scope === 'string' ? scope.split(' ') : [])

/** With a user limited by the present registrations, so a removed scope is gone with the next refresh. */
const scopeFor = ({ oidc }: KoaContextWithOIDC): string => {
  const { account, client } = oidc
  if (!account) return SCOPES.join(' ')
  const [ofUser, ofClient] = [setOf(account['scope']), setOf(client?.scope)]
  return SCOPES.filter(scope => ofUser.has(scope) && ofClient.has(scope)).join(' ')
}

/** This service is the only resource: it is the default, and another one is refused. */
const resourceIndicators = ({ audience, resource: ours }: ProviderOptions) => ({
  enabled: true,
  defaultResource: (_: unknown, __: unknown, oneOf?: readonly string[]) => oneOf?.[0] ?? ours,
  useGrantedResource: () => true,
  getResourceServerInfo: (ctx: KoaContextWithOIDC, resource: string): ResourceServer => {
    if (!resourceSpellings(ours).includes(resource)) throw new errors.InvalidTarget()
    return { audience, scope: scopeFor(ctx), accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }
  },
})

const ttl: Configuration['ttl'] = {
  AccessToken: USER_LIFETIME_SECONDS,
  AuthorizationCode: CODE_LIFETIME_SECONDS,
  BackchannelAuthenticationRequest: INTERACTION_LIFETIME_SECONDS,
  ClientCredentials: WORKLOAD_LIFETIME_SECONDS,
  DeviceCode: INTERACTION_LIFETIME_SECONDS,
  Grant: SESSION_LIFETIME_SECONDS,
  IdToken: USER_LIFETIME_SECONDS,
  Interaction: INTERACTION_LIFETIME_SECONDS,
  RefreshToken: SESSION_LIFETIME_SECONDS,
  Session: SESSION_LIFETIME_SECONDS,
}

const isAccessToken = (token: object): token is AccessToken => 'accountId' in token && 'grantId' in token

/** The tenant is that of the registration, never of the request. A token without scope is refused (RFC 6749, section 3.3). */
const extraTokenClaims: Configuration['extraTokenClaims'] = ({ oidc }, token) => {
  if (!token.scope) throw new errors.InvalidScope('the scopes that the token is for must be named', '')
  if (!isAccessToken(token)) return { tenant: token.client?.['tenant'] }
  return { tenant: oidc.account?.['tenant'], grant: grantName(token.grantId ?? '') }
}

/** None for a client of another tenant, or named as the user, whose tokens would be its own. A new password ends sessions. */
const findAccount =
  (users: ProviderOptions['users']): Configuration['findAccount'] =>
  async ({ oidc }, sub, token): Promise<Account | undefined> => {
    const user = (await users()).find(({ username }) => username === sub)
    if (!user || !isForTenant(oidc.client, user.tenant) || user.username === oidc.client?.clientId) return undefined
    const began = token && 'authTime' in token ? Number(token.authTime) : (oidc.session?.loginTs ?? 0)
    // Users without a password have sessions of the console alone.
    const since = user.password_set_at ?? (isConsole(oidc.client) ? 0 : Infinity)
    if (began < since) return undefined
    const { tenant, scope } = user
    return { accountId: sub, tenant, scope, claims: () => ({ sub }) }
  }

/** Prompts beside the defaults: a session whose user does not exist, and an application without authentication. */
const createPolicy = (): interactionPolicy.DefaultPolicy => {
  const policy = interactionPolicy.base()
  const { Check } = interactionPolicy
  const noAccount = new Check('no_account', 'the session is of no user of this tenant', 'login_required', ({ oidc }) =>
    Boolean(oidc.session?.accountId && !oidc.account),
  )
  policy.get('login')?.checks.add(noAccount, 0)
  // RFC 8252, section 8.6: nothing authenticates a public client, so the user is asked each time; but for the console of this
  // service, which is known by its address, and which asks whenever it is reloaded, since it keeps no token.
  const isPublic = new Check(
    'public_client',
    'the client cannot prove itself',
    'consent_required',
    ({ oidc: { client, result } }) => client?.clientAuthMethod === 'none' && !result?.consent && !isConsole(client),
  )
  policy.get('consent')?.checks.add(isPublic, 0)
  return policy
}

/** Any port of a loopback address is the same application (RFC 8252, section 7.3). */
const isOriginOf = (redirectUri: string, origin: string): boolean => {
  const [ours, theirs] = [new URL(redirectUri), new URL(origin)]
  if (isLoopback(redirectUri)) theirs.port = ours.port
  return ours.origin === theirs.origin
}

/** CORS is permitted for the origins of the client's redirect URIs. */
const clientBasedCORS: Configuration['clientBasedCORS'] = (_, origin, client) =>
  client.clientAuthMethod === 'none' &&
  URL.canParse(origin) &&
  (client.redirectUris ?? []).some(uri => isOriginOf(uri, origin))

const configure = (options: ProviderOptions): Configuration => ({
  adapter: options.adapter,
  allowOmittingSingleRegisteredRedirectUri: false,
  jwks: { keys: [{ ...options.key }] },
  clientAuthMethods: [...CLIENT_AUTH_METHODS],
  clientDefaults: { id_token_signed_response_alg: 'ES256' } satisfies Partial<ClientMetadata>,
  clockTolerance: CLOCK_TOLERANCE_SECONDS,
  cookies: {
    keys: [options.cookieKey],
    names: { session: 'ledger_session', interaction: 'ledger_interaction', resume: 'ledger_resume' },
    long: { httpOnly: true, sameSite: 'lax', path: new URL(options.issuer).pathname },
    short: { httpOnly: true, sameSite: 'lax' },
  },
  enabledJWA: {
    clientAuthSigningAlgValues: [...CLIENT_ASSERTION_ALGORITHMS],
    idTokenSigningAlgValues: ['ES256'],
  },
  expiresWithSession: () => false,
  extraClientMetadata: { properties: ['tenant'] },
  extraTokenClaims,
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    resourceIndicators: resourceIndicators(options),
    revocation: { enabled: true, allowedPolicy: (_, client, token) => token.clientId === client.clientId },
    rpInitiatedLogout: { enabled: false },
    userinfo: { enabled: false },
  },
  clientBasedCORS,
  findAccount: findAccount(options.users),
  interactions: {
    policy: createPolicy(),
    url: (_, { uid }) => `${new URL(options.issuer).pathname}${INTERACTION_ROUTE}/${uid}`,
  },
  issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
  pkce: { required: () => true },
  // Browsers get a page; OAuth clients get JSON, whatever they accept.
  renderError: (ctx, out) => {
    if (!isPage(ctx)) {
      ctx.type = 'json'
      ctx.body = out
      return
    }
    const { error, error_description = '' } = out
    const page = errorPage({ error, error_description }, ctx.status)
    ctx.set(headersOf(page))
    ctx.body = textOf(page)
  },
  responseTypes: ['code'],
  rotateRefreshToken: true,
  routes: { ...ROUTES },
  scopes: ['openid', ...SCOPES],
  ttl,
})

/**
 * Only `query`: the library would send the refusal in the refused mode, one of which is a page with a script, so the
 * mode is replaced by an unknown name.
 */
const refuseOtherModes = (ctx: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> => {
  const { response_mode: mode } = ctx.query
  if (typeof mode === 'string' && mode !== 'query') ctx.query = { ...ctx.query, response_mode: 'closed' }
  return next()
}

/** The authorization server: oidc-provider, with authorization codes for users and client credentials for workloads. */
export const createProvider = (options: ProviderOptions): Provider => {
  const provider = new Provider(options.issuer, configure(options))
  provider.use(refuseOtherModes)
  return provider
}
