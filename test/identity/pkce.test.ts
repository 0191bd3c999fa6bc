import { createHash, randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { decide, type Fields, newPkce } from './browser.ts'
import { CALLBACK, type Delegation, openDelegation } from './oauthFlows.ts'

/** Attacks on the authorization code flow with PKCE, over real HTTP against the whole service. */

type Changes = Readonly<Record<string, string | undefined>>

/** Requests without a trustworthy redirect URI: the issuer shows an error page and does not redirect. */
const shownAsErrorPage: readonly (readonly [name: string, changes: Changes, more?: string])[] = [
  ['an application that is not registered', { client_id: 'unregistered' }],
  ['no application at all', { client_id: undefined }],
  ['an application named twice', {}, '&client_id=other'],
  ['no redirect URI, though only one is registered', { redirect_uri: undefined }],
  ['a redirect URI with one character more', { redirect_uri: `${CALLBACK}x` }],
  ['a redirect URI with one character less', { redirect_uri: CALLBACK.slice(0, -1) }],
  ['a redirect URI with one character changed', { redirect_uri: CALLBACK.replace('callback', 'callbacl') }],
  ['a redirect URI in another case', { redirect_uri: CALLBACK.replace('callback', 'Callback') }],
  ['a redirect URI with a slash behind it', { redirect_uri: `${CALLBACK}/` }],
  ['a redirect URI with a query', { redirect_uri: `${CALLBACK}?next=1` }],
  ['a redirect URI with an empty query', { redirect_uri: `${CALLBACK}?` }],
  ['a redirect URI with a fragment', { redirect_uri: `${CALLBACK}#x` }],
  ['a redirect URI on another port with another path', { redirect_uri: CALLBACK.replace('4999/', '5999/other/') }],
  ['a redirect URI on a port that does not exist', { redirect_uri: CALLBACK.replace('4999', '99999') }],
  ['a redirect URI on https', { redirect_uri: CALLBACK.replace('http:', 'https:') }],
  ['a redirect URI by the other name of this host', { redirect_uri: CALLBACK.replace('127.0.0.1', 'localhost') }],
  ['a redirect URI with a host before the at sign', { redirect_uri: 'http://127.0.0.1:4999@evil.test/callback' }],
  ['a redirect URI with a path above the registered one', { redirect_uri: `${CALLBACK}/../steal` }],
  ['a redirect URI with one letter encoded', { redirect_uri: CALLBACK.replace('/c', '/%63') }],
  [
    'a redirect URI with the registered one as its beginning',
    { redirect_uri: CALLBACK.replace('4999', '4999.evil.test') },
  ],
  ['a redirect URI that is a script', { redirect_uri: 'javascript:alert(1)' }],
  ['a redirect URI with a page in it', { redirect_uri: 'data:text/html,x' }],
  ['a redirect URI without a scheme', { redirect_uri: '//evil.test/callback' }],
  ['a redirect URI of another application', { redirect_uri: 'http://127.0.0.1:4998/second' }],
  ['a redirect URI given twice', {}, `&redirect_uri=${encodeURIComponent('http://evil.test/')}`],
]

/**
 * Requests with a valid redirect URI: the browser is redirected with the error code, the state and the issuer (RFC
 * 9207).
 */
const redirectedWithError: readonly (readonly [name: string, error: string, changes: Changes, more?: string])[] = [
  ['the method plain', 'invalid_request', { code_challenge_method: 'plain' }],
  ['no method, which means plain', 'invalid_request', { code_challenge_method: undefined }],
  ['an unknown method', 'invalid_request', { code_challenge_method: 'S512' }],
  ['the method in lower case', 'invalid_request', { code_challenge_method: 's256' }],
  ['no challenge', 'invalid_request', { code_challenge: undefined, code_challenge_method: undefined }],
  ['a method without a challenge', 'invalid_request', { code_challenge: undefined }],
  ['an empty challenge', 'invalid_request', { code_challenge: '' }],
  ['a challenge that is too short', 'invalid_request', { code_challenge: 'a'.repeat(42) }],
  ['a challenge that is too long', 'invalid_request', { code_challenge: 'a'.repeat(129) }],
  ['a challenge with a character of plain base64', 'invalid_request', { code_challenge: `${'a'.repeat(42)}+` }],
  ['a challenge given twice', 'invalid_request', {}, `&code_challenge=${'b'.repeat(43)}`],
  ['a token without a code', 'unsupported_response_type', { response_type: 'token' }],
  ['an id token without a code', 'unsupported_response_type', { response_type: 'id_token', nonce: 'n' }],
  ['a code together with a token', 'unsupported_response_type', { response_type: 'code token' }],
  ['no response type', 'invalid_request', { response_type: undefined }],
  ['a scope that the application is not registered for', 'invalid_scope', { scope: 'orders:read keys:manage' }],
  ['a scope with a quotation mark', 'invalid_scope', { scope: 'orders:read "x' }],
  ['a scope given twice', 'invalid_request', {}, '&scope=keys:manage'],
  ['a response in the fragment', 'unsupported_response_mode', { response_mode: 'fragment' }],
  ['a response in a form that a script submits', 'unsupported_response_mode', { response_mode: 'form_post' }],
  ['a response by an unknown mode', 'unsupported_response_mode', { response_mode: 'web_message' }],
  ['the prompt none without a session', 'login_required', { prompt: 'none' }],
  ['the prompts none and login together', 'invalid_request', { prompt: 'none login' }],
  ['an unknown prompt', 'invalid_request', { prompt: 'create' }],
  ['a request object', 'request_not_supported', { request: 'eyJhbGciOiJub25lIn0.e30.' }],
  ['a request by reference', 'request_uri_not_supported', { request_uri: 'https://evil.test/request' }],
  ['a registration in the request', 'registration_not_supported', { registration: '{}' }],
  ['a token for an unknown resource', 'invalid_target', { resource: 'https://other.test' }],
  ['a resource with a fragment', 'invalid_target', { resource: 'https://other.test/#x' }],
]

type Redemption = (correct: Fields, delegation: Delegation) => Fields

const without =
  (name: string): Redemption =>
  correct =>
    Object.fromEntries(Object.entries(correct).filter(([key]) => key !== name))

const but =
  (changes: (correct: Fields, delegation: Delegation) => Fields): Redemption =>
  (correct, delegation) => ({ ...correct, ...changes(correct, delegation) })

/** Redemptions of a code by another client, or with wrong parameters. */
const refusedRedemptions: readonly (readonly [name: string, error: string, status: number, change: Redemption])[] = [
  ['no verifier', 'invalid_grant', 400, without('code_verifier')],
  ['an empty verifier', 'invalid_grant', 400, but(() => ({ code_verifier: '' }))],
  ['a verifier that is too short', 'invalid_request', 400, but(() => ({ code_verifier: 'a'.repeat(42) }))],
  ['a verifier that is too long', 'invalid_request', 400, but(() => ({ code_verifier: 'a'.repeat(129) }))],
  ['a verifier with a space', 'invalid_request', 400, but(() => ({ code_verifier: `${'a'.repeat(43)} ` }))],
  ['another verifier', 'invalid_grant', 400, but(() => ({ code_verifier: newPkce().verifier }))],
  [
    'the verifier with one character changed',
    'invalid_grant',
    400,
    but(({ code_verifier = '' }) => ({
      code_verifier: `${code_verifier.slice(0, -1)}${code_verifier.endsWith('A') ? 'B' : 'A'}`,
    })),
  ],
  [
    'the challenge in place of the verifier',
    'invalid_grant',
    400,
    but(({ code_verifier = '' }) => ({
      code_verifier: createHash('sha256').update(code_verifier).digest('base64url'),
    })),
  ],
  ['no redirect URI', 'invalid_request', 400, without('redirect_uri')],
  ['a redirect URI with one character more', 'invalid_grant', 400, but(() => ({ redirect_uri: `${CALLBACK}x` }))],
  [
    'a redirect URI by the other name of this host',
    'invalid_grant',
    400,
    but(() => ({ redirect_uri: CALLBACK.replace('127.0.0.1', 'localhost') })),
  ],
  ['another application', 'invalid_grant', 400, but((_, { clients }) => ({ client_id: clients.second }))],
  ['an application that is not registered', 'invalid_client', 401, but(() => ({ client_id: 'unregistered' }))],
  ['no application', 'invalid_request', 400, without('client_id')],
  ['a public application with a secret', 'invalid_client', 401, but(() => ({ client_secret: 'made-up' }))],
  ['another resource', 'invalid_target', 400, but(() => ({ resource: 'https://other.test' }))],
  ['a code that was never issued', 'invalid_grant', 400, but(() => ({ code: randomUUID() }))],
  [
    'the code with one character changed',
    'invalid_grant',
    400,
    but(({ code = '' }) => ({ code: `${code.slice(0, -1)}${code.endsWith('A') ? 'B' : 'A'}` })),
  ],
  ['the code without its last character', 'invalid_grant', 400, but(({ code = '' }) => ({ code: code.slice(0, -1) }))],
  ['no code', 'invalid_request', 400, without('code')],
  ['no kind of grant', 'invalid_request', 400, without('grant_type')],
  [
    'the password grant',
    'unsupported_grant_type',
    400,
    but(() => ({ grant_type: 'password', username: 'a', password: 'b' })),
  ],
  [
    'the client credentials grant',
    'invalid_request',
    400,
    but(() => ({ grant_type: 'client_credentials', scope: 'orders:read' })),
  ],
  [
    'the code as a refresh token',
    'invalid_grant',
    400,
    but(({ code = '' }) => ({ grant_type: 'refresh_token', refresh_token: code })),
  ],
]

describe('identity: the authorization code flow', () => {
  let d: Delegation

  before(async () => {
    d = await openDelegation()
  })

  for (const [name, changes, more] of shownAsErrorPage)
    it(`does not redirect for ${name}`, async () => {
      const { status, headers, text, left } = await d.browser().get(d.authorizeUrl(changes, more))
      expect(left).to.equal(undefined)
      expect(status).to.equal(400)
      expect(headers.get('content-type')).to.equal('text/html; charset=utf-8')
      expect(headers.get('content-security-policy'))
        .to.include("default-src 'none'")
        .and.include("frame-ancestors 'none'")
      expect(text).to.include('<h1>This did not work</h1>').and.not.include('evil.test')
    })

  for (const [name, error, changes, more] of redirectedWithError)
    it(`redirects with ${error} for ${name}`, async () => {
      const { left } = await d.browser().get(d.authorizeUrl(changes, more))
      expect(`${left?.origin}${left?.pathname}`).to.equal(CALLBACK)
      // The error of the implicit flow is in the fragment, like its tokens.
      const isInFragment = error === 'unsupported_response_type'
      const answer = isInFragment ? new URLSearchParams(left?.hash.slice(1)) : left?.searchParams
      expect(Object.fromEntries(answer ?? [])).to.include({ error, state: 'st-1', iss: d.issuer })
      for (const given of ['code', 'access_token', 'id_token']) expect(answer?.has(given)).to.equal(false)
    })

  it('redirects without a state when none was sent, and with invalid_request for two', async () => {
    const none = await d.browser().get(d.authorizeUrl({ state: undefined, prompt: 'none' }))
    expect(none.left?.searchParams.has('state')).to.equal(false)
    const two = await d.browser().get(d.authorizeUrl({}, '&state=st-2'))
    expect(two.left?.searchParams.get('error')).to.equal('invalid_request')
    expect(two.left?.searchParams.has('state')).to.equal(false)
  })

  it('refuses clients of the client credentials grant, and POST', async () => {
    const { left, status } = await d.browser().get(d.authorizeUrl({ client_id: d.clients.workload }))
    expect([left, status]).to.deep.equal([undefined, 400])
    const posted = await fetch(d.authorizeUrl(), { method: 'POST', redirect: 'manual' })
    expect([posted.status, posted.headers.get('allow')]).to.deep.equal([405, 'GET'])
  })

  for (const [name, error, status, change] of refusedRedemptions)
    it(`gives no token for ${name}`, async () => {
      const correct = d.redemption(await d.grant())
      const answer = await d.token(change(correct, d))
      expect([answer.status, answer.body['error']]).to.deep.equal([status, error])
      expect(answer.headers.get('cache-control')).to.equal('no-store')
      expect(answer.headers.get('content-type')).to.match(/^application\/json/)
      expect(JSON.stringify(answer.body)).to.not.include(correct['code'])
    })

  it('is accepted from the form only, with each parameter once', async () => {
    const correct = d.redemption(await d.grant())
    const form = new URLSearchParams(correct).toString()
    const refused = [
      await d.token(`${form}&code=other`),
      await d.token(`${form}&code_verifier=${newPkce().verifier}`),
      await d.token(JSON.stringify(correct), { 'content-type': 'application/json' }),
    ]
    for (const { status, body } of refused) expect([status, body['error']]).to.deep.equal([400, 'invalid_request'])
    const inUrl = await fetch(`${d.issuer}/token?${form}`, { method: 'POST' })
    expect(inUrl.status).to.equal(400)
    expect((await d.token(correct)).status).to.equal(200)
  })

  describe('of a confidential application', () => {
    const requested = () => ({ client_id: d.clients.server })
    const redemption = async () => d.redemption(await d.grant(requested()))

    it('requires the secret of the client, also with the right verifier', async () => {
      const { client_id: _, ...form } = await redemption()
      const { server, workload } = d.clients
      const attempts: readonly (readonly [Fields, Fields])[] = [
        [{ ...form, client_id: server }, {}],
        [{ ...form, client_id: server, client_secret: 'wrong' }, {}],
        [form, d.basic(server, 'wrong')],
        [{ ...form, client_id: server, client_secret: '' }, {}],
      ]
      for (const [fields, headers] of attempts) {
        const { status, body } = await d.token(fields, headers)
        expect([status, body['error']]).to.deep.equal([401, 'invalid_client'])
      }
      const others = await d.token(form, d.basic(workload))
      expect(others.status).to.equal(400)
      expect((await d.token(form, d.basic(server))).status).to.equal(200)
    })

    it('is refused for two client authentications, and for that of another client', async () => {
      const { client_id: _, ...form } = await redemption()
      const twice = await d.token({ ...form, client_secret: d.secret }, d.basic(d.clients.server))
      const asOther = await d.token({ ...form, client_id: d.clients.web }, d.basic(d.clients.server))
      expect([twice.status, asOther.status]).to.deep.equal([400, 400])
    })

    it('requires PKCE too', async () => {
      const { left } = await d
        .browser()
        .get(d.authorizeUrl({ ...requested(), code_challenge: undefined, code_challenge_method: undefined }))
      expect(left?.searchParams.get('error')).to.equal('invalid_request')
    })
  })

  describe('used a second time', () => {
    it('revokes the tokens of the first use: the API and the refresh refuse them', async () => {
      const correct = d.redemption(await d.grant())
      const { body } = await d.token(correct)
      const [access, refresh] = [String(body['access_token']), String(body['refresh_token'])]
      expect(await d.api(access)).to.equal('ok')
      const again = await d.token(correct)
      expect([again.status, again.body['error']]).to.deep.equal([400, 'invalid_grant'])
      expect(await d.api(access)).to.equal('token_invalid')
      expect((await d.refresh(refresh)).body['error']).to.equal('invalid_grant')
      expect((await d.token(correct)).status).to.equal(400)
    })

    it('revokes nothing without the verifier, so that an attacker cannot end logins of others', async () => {
      const correct = d.redemption(await d.grant())
      const { body } = await d.token(correct)
      expect((await d.token({ ...correct, code_verifier: newPkce().verifier })).status).to.equal(400)
      expect(await d.api(String(body['access_token']))).to.equal('ok')
    })

    it('has one winner of twenty concurrent uses, whose tokens are revoked', async () => {
      const correct = d.redemption(await d.grant())
      const answers = await Promise.all(Array.from({ length: 20 }, () => d.token(correct)))
      const won = answers.filter(({ status }) => status === 200)
      expect(won).to.have.length(1)
      const errors = answers.filter(({ status }) => status !== 200).map(({ status, body }) => [status, body['error']])
      expect(errors).to.deep.equal(Array.from({ length: 19 }, () => [400, 'invalid_grant']))
      expect(await d.api(String(won[0]?.body['access_token']))).to.equal('token_invalid')
      expect((await d.refresh(String(won[0]?.body['refresh_token']))).status).to.equal(400)
    })
  })

  describe('a refresh token', () => {
    it('yields a new one each time, and no scope beyond its own', async () => {
      const { refresh } = await d.tokens()
      const next = await d.refresh(refresh, { scope: 'orders:read' })
      expect(next.body).to.include({ scope: 'orders:read', expires_in: 900, token_type: 'Bearer' })
      expect(next.body['refresh_token']).to.be.a('string').and.not.equal(refresh)
      const more = await d.refresh(String(next.body['refresh_token']), { scope: 'orders:read keys:manage' })
      expect(more.body['error']).to.equal('invalid_scope')
    })

    it('that is used again revokes the whole grant', async () => {
      const first = await d.tokens()
      const second = await d.refresh(first.refresh)
      const latest = await d.refresh(String(second.body['refresh_token']))
      expect(latest.status).to.equal(200)
      expect((await d.refresh(first.refresh)).body['error']).to.equal('invalid_grant')
      expect((await d.refresh(String(latest.body['refresh_token']))).body['error']).to.equal('invalid_grant')
      for (const token of [first.access, second.body['access_token'], latest.body['access_token']])
        expect(await d.api(String(token))).to.equal('token_invalid')
    })

    it('has one winner of twenty concurrent uses, whose tokens are revoked', async () => {
      const { refresh } = await d.tokens()
      const answers = await Promise.all(Array.from({ length: 20 }, () => d.refresh(refresh)))
      const won = answers.filter(({ status }) => status === 200)
      expect(won).to.have.length(1)
      expect(await d.api(String(won[0]?.body['access_token']))).to.equal('token_invalid')
    })

    it('is refused from another application, at the API, and as a code', async () => {
      const { refresh, access } = await d.tokens()
      expect((await d.refresh(refresh, { client_id: d.clients.second })).body['error']).to.equal('invalid_grant')
      expect((await d.refresh(access)).body['error']).to.equal('invalid_grant')
      expect(await d.api(refresh)).to.equal('token_invalid')
      expect((await d.token({ ...d.redemption({ code: refresh, verifier: newPkce().verifier }) })).status).to.equal(400)
      expect((await d.refresh(refresh, { resource: 'https://other.test' })).body['error']).to.equal('invalid_target')
    })
  })

  it('yields an id token that the API refuses', async () => {
    const { body } = await d.token(d.redemption(await d.grant({ scope: 'openid orders:read', nonce: 'n-1' })))
    expect(body['scope']).to.equal('orders:read')
    expect(await d.api(String(body['id_token']))).to.equal('token_invalid')
    expect(await d.api(String(body['access_token']))).to.equal('ok')
  })

  it('leads to a new consent for a public application, even with a session, since it is not authenticated', async () => {
    const { on, page } = await d.toConsent()
    await decide(on, page, 'allow')
    const silent = await on.get(d.authorizeUrl({ prompt: 'none' }))
    expect(silent.left?.searchParams.get('error')).to.equal('consent_required')
    const reply = await on.get(d.authorizeUrl())
    expect(reply.text).to.include('to act for you?')
  })
})
