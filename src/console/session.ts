import * as oauth from 'oauth4webapi'
import { HOME, settings } from './settings.ts'

/**
 * The login: authorization code with PKCE at the issuer. Tokens are in this module's memory alone; what survives the way
 * to the issuer and back is the verifier of one login, in the storage of this tab.
 */

export type User = {
  readonly subject: string
  readonly tenant: string
  readonly scopes: ReadonlySet<string>
  /** Milliseconds of the clock. */
  readonly expiresAt: number
}

export type SessionState = 'signed-out' | 'signed-in' | 'expired'

type Tokens = { readonly access: string; readonly refresh: string | undefined; readonly user: User }
type Pending = { readonly state: string; readonly verifier: string; readonly path: string }

const PENDING = 'ledger-console-login'
/** Set when a user signs out: the issuer may still know them, and must ask who signs in next. */
const SIGNED_OUT = 'ledger-console-signed-out'
const CHANNEL = 'ledger-console'
const POPUP = 'ledger-console-again'
/** A token is replaced this long before it expires, as clocks differ. */
const RENEW_BEFORE_MS = 60_000

const client: oauth.Client = { client_id: settings.clientId }
const redirectUri = `${location.origin}${HOME}`
/** Plain http is for an issuer of this machine. */
const insecure = { [oauth.allowInsecureRequests]: settings.issuer.startsWith('http:') }

let tokens: Tokens | undefined
let state: SessionState = 'signed-out'
let renewal: Promise<void> | undefined
let timer = 0
const listeners = new Set<() => void>()
const channel = new BroadcastChannel(CHANNEL)

const change = (next: SessionState, nextTokens: Tokens | undefined): void => {
  state = next
  tokens = nextTokens
  for (const listener of listeners) listener()
}

export const onSession = (listener: () => void): void => void listeners.add(listener)
export const sessionState = (): SessionState => state
/** The user who is signed in, or whose session has expired. */
export const user = (): User | undefined => tokens?.user
export const may = (...scopes: readonly string[]): boolean =>
  scopes.every(scope => tokens?.user.scopes.has(scope) === true)

let metadata: Promise<oauth.AuthorizationServer> | undefined

const discover = async (): Promise<oauth.AuthorizationServer> => {
  const issuer = new URL(settings.issuer)
  const response = await oauth.discoveryRequest(issuer, { algorithm: 'oidc', ...insecure })
  return oauth.processDiscoveryResponse(issuer, response)
}

const authorizationServer = (): Promise<oauth.AuthorizationServer> => {
  metadata ??= discover()
  metadata.catch(() => (metadata = undefined))
  return metadata
}

type Claims = { sub: string; tenant?: string; scope?: string; exp: number }

/** Read for display and for what is offered; the service checks the token. */
const userOf = (access: string): User => {
  const base64 = (access.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')
  const bytes = Uint8Array.from(atob(base64), character => character.charCodeAt(0))
  const { sub, tenant = '', scope = '', exp } = JSON.parse(new TextDecoder().decode(bytes)) as Claims
  return { subject: sub, tenant, scopes: new Set(scope.split(' ')), expiresAt: exp * 1_000 }
}

const accept = ({ access_token: access, refresh_token: refresh }: oauth.TokenEndpointResponse): void => {
  const accepted = { access, refresh: refresh ?? tokens?.refresh, user: userOf(access) }
  localStorage.removeItem(SIGNED_OUT)
  clearTimeout(timer)
  const leftMs = accepted.user.expiresAt - Date.now()
  timer = window.setTimeout(() => void renew(), Math.max(leftMs - RENEW_BEFORE_MS, leftMs / 2))
  change('signed-in', accepted)
}

/** The address of a login at the issuer, and what its answer needs. */
const beginLogin = async (path: string): Promise<{ readonly url: string; readonly pending: Pending }> => {
  const { authorization_endpoint: endpoint = '' } = await authorizationServer()
  const pending = { state: oauth.generateRandomState(), verifier: oauth.generateRandomCodeVerifier(), path }
  const url = new URL(endpoint)
  const parameters = {
    response_type: 'code',
    client_id: settings.clientId,
    redirect_uri: redirectUri,
    scope: settings.scope,
    state: pending.state,
    code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier),
    code_challenge_method: 'S256',
    ...(localStorage.getItem(SIGNED_OUT) === null ? {} : { prompt: 'login' }),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return { url: url.href, pending }
}

/** Leaves the page for the issuer, which comes back to the present address. */
export const signIn = async (): Promise<void> => {
  const { url, pending } = await beginLogin(`${location.pathname}${location.search}`)
  sessionStorage.setItem(PENDING, JSON.stringify(pending))
  location.assign(url)
}

const redeem = async (answer: URLSearchParams, { state: expected, verifier }: Pending): Promise<void> => {
  const server = await authorizationServer()
  const parameters = oauth.validateAuthResponse(server, client, answer, expected)
  const response = await oauth.authorizationCodeGrantRequest(
    ...([server, client, oauth.None(), parameters, redirectUri, verifier, insecure] as const),
  )
  accept(await oauth.processAuthorizationCodeResponse(server, client, response))
}

/**
 * Signs in again beside the page, which stays as it is: in a window that comes back with the answer and closes. To be
 * called by a click, as browsers block other windows.
 */
export const signInAgain = async (): Promise<void> => {
  const popup = window.open('', POPUP, 'popup,width=480,height=680')
  const { url, pending } = await beginLogin(HOME)
  if (popup === null) return signIn()
  const answered = new Promise<URLSearchParams>(resolve => {
    const listen = ({ data }: MessageEvent): void => {
      const answer = new URLSearchParams(String(data.answer ?? ''))
      if (answer.get('state') !== pending.state) return
      channel.removeEventListener('message', listen)
      resolve(answer)
    }
    channel.addEventListener('message', listen)
  })
  popup.location.replace(url)
  await redeem(await answered, pending)
}

/** Replaces the access token; without a way to do so the session is expired, and the page stays. */
const renew = (): Promise<void> => {
  renewal ??= refresh().finally(() => (renewal = undefined))
  return renewal
}

const refresh = async (): Promise<void> => {
  const before = tokens
  if (before === undefined) return
  try {
    if (before.refresh === undefined) throw new Error('The issuer gave no refresh token.')
    const server = await authorizationServer()
    const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), before.refresh, insecure)
    accept(await oauth.processRefreshTokenResponse(server, client, response))
  } catch (error) {
    // Without a network the token may still be renewed later, by the next request.
    const isRefused = error instanceof oauth.ResponseBodyError || before.refresh === undefined
    if (isRefused || before.user.expiresAt <= Date.now()) change('expired', before)
  }
}

/** The access token of a request, renewed if it is about to expire or, with `again`, was refused. */
export const accessToken = async (again = false): Promise<string | undefined> => {
  if (state !== 'signed-in' || tokens === undefined) return undefined
  if (again || tokens.user.expiresAt - Date.now() < 5_000) await renew()
  return sessionState() === 'signed-in' ? tokens?.access : undefined
}

/** The API refused a token that could not be renewed. */
export const expire = (): void => {
  if (state === 'signed-in') change('expired', tokens)
}

const forget = (): void => {
  clearTimeout(timer)
  change('signed-out', undefined)
}

/** The request goes on when the page is closed or loaded anew while it is on its way. */
const outliving = {
  ...insecure,
  [oauth.customFetch]: (url: string, options: RequestInit) => fetch(url, { ...options, keepalive: true }),
}

/** Ends the session in all tabs, and at the issuer, which is asked to revoke what it gave. */
export const signOut = async (): Promise<void> => {
  const token = tokens?.refresh ?? tokens?.access
  localStorage.setItem(SIGNED_OUT, '1')
  channel.postMessage({ signOut: true })
  forget()
  const server = await authorizationServer()
  if (token !== undefined && server.revocation_endpoint !== undefined)
    await oauth.revocationRequest(server, client, oauth.None(), token, outliving).catch(() => undefined)
  if (server.end_session_endpoint === undefined) return
  const url = new URL(server.end_session_endpoint)
  url.searchParams.set('client_id', settings.clientId)
  url.searchParams.set('post_logout_redirect_uri', redirectUri)
  location.assign(url.href)
}

channel.addEventListener('message', ({ data }) => data.signOut === true && forget())

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** An issuer of this machine has one of its names: cookies and the redirect URI are of that one. */
const otherName = (): string | undefined => {
  const { hostname, origin } = new URL(settings.issuer)
  const isTwin = origin !== location.origin && LOOPBACK.has(hostname) && LOOPBACK.has(location.hostname)
  return isTwin ? `${origin}${location.pathname}${location.search}` : undefined
}

export type Start = 'continue' | 'leaving' | { readonly failed: string }

/**
 * Begins a session when the page is opened: with the answer of the issuer if it is one, or by going there. Nobody who
 * signed out is signed in again without a click.
 */
export const start = async (): Promise<Start> => {
  const other = otherName()
  if (other !== undefined) {
    location.replace(other)
    return 'leaving'
  }
  const answer = new URLSearchParams(location.search)
  const stored = sessionStorage.getItem(PENDING)
  sessionStorage.removeItem(PENDING)
  const isAnswer = answer.has('state') && (answer.has('code') || answer.has('error'))
  const isBeside = window.name === POPUP || window.opener !== null
  if (isAnswer && isBeside && stored === null) {
    channel.postMessage({ answer: answer.toString() })
    window.close()
    return 'leaving'
  }
  try {
    if (isAnswer && stored !== null) {
      const pending = JSON.parse(stored) as Pending
      history.replaceState(null, '', pending.path)
      await redeem(answer, pending)
      return 'continue'
    }
    if (isAnswer) history.replaceState(null, '', HOME)
    if (localStorage.getItem(SIGNED_OUT) !== null || settings.clientId === '') return 'continue'
    await signIn()
    return 'leaving'
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) }
  }
}
