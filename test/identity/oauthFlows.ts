import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { addClient, type DevClient, newSecret } from '../../src/embedded/issuer/clients.ts'
import { addUser } from '../../src/embedded/issuer/users.ts'
import { sharedService, type TestService } from '../support/service.ts'
import { type Browser, decide, type Fields, logIn, newPkce, openBrowser, type Seen } from './browser.ts'
import { retryingFetch } from '../support/client.ts'

/** The OAuth flows of correct clients, at the shared service with new users and applications. */

export const CALLBACK = 'http://127.0.0.1:4999/callback'
const FILE_CHECK_MS = 1_100
const SCOPE = 'orders:read orders:write invoices:read'

export type Granted = { readonly code: string; readonly verifier: string }
export type Answered = { readonly status: number; readonly headers: Headers; readonly body: Record<string, unknown> }
export type Delegation = Awaited<ReturnType<typeof openDelegation>>

export const openDelegation = async () => {
  const service: TestService = await sharedService()
  const { issuer } = service.addresses
  const { dataDir } = service
  const mark = randomUUID().slice(0, 8)
  const tenant = `t-${mark}`
  const other = `o-${mark}`

  const client = async (given: Partial<DevClient> & { client_id: string }): Promise<string> => {
    const id = `${given.client_id}-${mark}`
    const made = { tenant, scope: SCOPE, redirect_uris: [CALLBACK], ...given, client_id: id } as DevClient
    await addClient(dataDir, made)
    return id
  }
  const secret = newSecret()
  const web = await client({ client_id: 'web', public: true })
  const second = await client({ client_id: 'second', public: true, redirect_uris: ['http://127.0.0.1:4998/second'] })
  const server = await client({ client_id: 'server', client_secret: secret })
  const workload = `workload-${mark}`
  await addClient(dataDir, { client_id: workload, tenant, scope: SCOPE, client_secret: secret })
  const user = `ann-${mark}`
  const ofOtherTenant = `zoe-${mark}`
  const narrow = `ned-${mark}`
  const password = await addUser(dataDir, { username: user, tenant, scope: `${SCOPE} payments:read` })
  await addUser(dataDir, { username: ofOtherTenant, tenant: other, scope: SCOPE }, password)
  await addUser(dataDir, { username: narrow, tenant, scope: 'orders:read' }, password)
  /** The issuer checks its files at most once a second: its next request after this time reads the changes. */
  const settle = (): Promise<void> => sleep(FILE_CHECK_MS)
  await settle()

  const browser = (): Browser => openBrowser(new URL(issuer).origin)

  const authorizeUrl = (changes: Readonly<Record<string, string | undefined>> = {}, more = ''): string => {
    const requested = {
      client_id: web,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: SCOPE,
      state: 'st-1',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
      ...changes,
    }
    const given = Object.entries(requested).filter((entry): entry is [string, string] => entry[1] !== undefined)
    return `${issuer}/auth?${new URLSearchParams(given).toString()}${more}`
  }

  const token = async (fields: Fields | string, headers: Fields = {}): Promise<Answered> => {
    const body = typeof fields === 'string' ? fields : new URLSearchParams(fields)
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const response = await retryingFetch(`${issuer}/token`, { method: 'POST', headers: { ...type, ...headers }, body })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: JSON.parse(text) as Record<string, unknown> }
  }

  const revoke = async (fields: Fields, headers: Fields = {}): Promise<number> =>
    (await retryingFetch(`${issuer}/revoke`, { method: 'POST', headers, body: new URLSearchParams(fields) })).status

  /** Follows the flow up to the consent page. */
  const toConsent = async (changes: Fields = {}, as = user): Promise<{ on: Browser; page: Seen; verifier: string }> => {
    const { verifier, challenge } = newPkce()
    const on = browser()
    const login = await on.get(authorizeUrl({ code_challenge: challenge, ...changes }))
    return { on, page: await logIn(on, login, as, password), verifier }
  }

  /** The authorization code after the user's consent. */
  const grant = async (changes: Fields = {}, as = user): Promise<Granted> => {
    const { on, page, verifier } = await toConsent(changes, as)
    const { left } = await decide(on, page, 'allow')
    expect(left?.searchParams.get('error'), left?.href).to.equal(null)
    return { code: left?.searchParams.get('code') ?? '', verifier }
  }

  /** The request of a correct public client. */
  const redemption = ({ code, verifier }: Granted): Fields => ({
    grant_type: 'authorization_code',
    client_id: web,
    code,
    code_verifier: verifier,
    redirect_uri: CALLBACK,
  })

  const tokens = async (changes: Fields = {}, as = user) => {
    const { status, body } = await token(redemption(await grant(changes, as)))
    expect(status, JSON.stringify(body)).to.equal(200)
    return { access: String(body['access_token']), refresh: String(body['refresh_token']), scope: body['scope'] }
  }

  const refresh = (refreshToken: string, changes: Fields = {}): Promise<Answered> =>
    token({ grant_type: 'refresh_token', client_id: web, refresh_token: refreshToken, ...changes })

  /** The API's response to the token: 200, or its problem code. */
  const api = async (bearer: string): Promise<string> => {
    const response = await retryingFetch(`${service.api}/orders`, { headers: { authorization: `Bearer ${bearer}` } })
    const body = (await response.json()) as { code?: string }
    return response.status === 200 ? 'ok' : String(body.code)
  }

  const basic = (id: string, given = secret): Fields => ({
    authorization: `Basic ${Buffer.from(`${id}:${given}`).toString('base64')}`,
  })

  return {
    service,
    issuer,
    dataDir,
    tenant,
    mark,
    clients: { web, second, server, workload },
    users: { user, ofOtherTenant, narrow },
    password,
    secret,
    client,
    settle,
    browser,
    authorizeUrl,
    token,
    revoke,
    toConsent,
    grant,
    redemption,
    tokens,
    refresh,
    api,
    basic,
  }
}
