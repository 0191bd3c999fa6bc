import { expect } from 'chai'
import { addUser, removeUser, setPassword } from '../../src/embedded/issuer/users.ts'
import { type Browser, decide, type Fields, formOf, logIn, type Seen } from './browser.ts'
import { type Delegation, openDelegation } from './oauthFlows.ts'

const WRONG = 'That did not work. Check the user name and the password.'

const withOtherEnd = (text: string): string => `${text.slice(0, -1)}${text.endsWith('_') ? '-' : '_'}`

const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

describe('identity: users who log in and consent', () => {
  let d: Delegation

  before(async () => {
    d = await openDelegation()
  })

  const loginPage = async (changes: Fields = {}): Promise<{ on: Browser; page: Seen }> => {
    const on = d.browser()
    return { on, page: await on.get(d.authorizeUrl(changes)) }
  }

  const tryLogin = async (username: string, password: string, changes: Fields = {}): Promise<Seen> => {
    const { on, page } = await loginPage(changes)
    return logIn(on, page, username, password)
  }

  it('get a token of their own tenant for 900 s that names the application and the grant', async () => {
    const { access, scope } = await d.tokens()
    const { iat, exp, jti, grant, ...claims } = claimsOf(access)
    expect(claims).to.deep.equal({
      iss: d.issuer,
      aud: 'payment-ledger',
      sub: d.users.user,
      client_id: d.clients.web,
      tenant: d.tenant,
      scope,
    })
    expect(Number(exp) - Number(iat)).to.equal(900)
    expect(jti).to.be.a('string')
    expect(grant).to.match(/^grant:[\w-]{43}$/)
  })

  it('see the client, the scopes, the tenant, the user and the redirect URI', async () => {
    const { page: login } = await loginPage()
    expect(login.text).to.include(`<strong>${d.clients.web}</strong>`).and.include(`<dd>${d.tenant}</dd>`)
    const { page } = await d.toConsent()
    for (const words of [
      'See your orders',
      'Create, change and cancel orders',
      d.users.user,
      d.tenant,
      '127.0.0.1:4999',
    ])
      expect(page.text).to.include(words)
  })

  it('see which requests are for their identity, and which ask for no known scope', async () => {
    const { page } = await d.toConsent({ scope: 'openid orders:read' })
    expect(page.text).to.include('<li>Know your user name</li><li>See your orders</li>')
    const odd = await d.toConsent({ scope: 'everything' })
    expect(odd.page.text).to.include('asks for nothing</h1>').and.not.include('value="allow"')
  })

  it('are redirected with access_denied when they deny, or cancel the login', async () => {
    const { on, page } = await d.toConsent()
    const denied = await decide(on, page, 'deny')
    const login = await loginPage()
    const { action, csrf } = formOf(login.page)
    const cancelled = await login.on.post(action.replace(/login$/, 'deny'), { csrf })
    for (const { left } of [denied, cancelled])
      expect(Object.fromEntries(left?.searchParams ?? [])).to.include({ error: 'access_denied', state: 'st-1' })
  })

  it('do not learn whether the name, the password or the tenant was wrong', async () => {
    const attempts = [
      await tryLogin(d.users.user, 'not the password'),
      await tryLogin(`unknown-${d.mark}`, d.password),
      await tryLogin(d.users.ofOtherTenant, d.password),
      await tryLogin('alice', ''),
    ]
    const sentences = attempts.map(({ text }) => /role="alert"[^>]*>([^<]*)/.exec(text)?.[1])
    expect(new Set(sentences)).to.deep.equal(new Set([WRONG]))
    for (const { status, left } of attempts) expect([status, left]).to.deep.equal([403, undefined])
  })

  it('can retry, with their name in any case', async () => {
    const { on, page } = await loginPage()
    const again = await logIn(on, page, d.users.user, 'not the password')
    expect(again.text).to.include(`value="${d.users.user}"`)
    const consent = await logIn(on, again, ` ${d.users.user.toUpperCase()} `, d.password)
    expect(consent.text).to.include('to act for you?')
  })

  it('consent to their own scopes only', async () => {
    const { page } = await d.toConsent({}, d.users.narrow)
    expect(page.text).to.match(/but you may not do this yourself[^]*Create, change and cancel orders/)
    const { access, scope, refresh } = await d.tokens({}, d.users.narrow)
    expect(scope).to.equal('orders:read')
    expect(claimsOf(access)['scope']).to.equal('orders:read')
    const more = await d.refresh(refresh, { scope: 'orders:read orders:write' })
    expect(more.body['error']).to.equal('invalid_scope')
  })

  it('without any of the requested scopes see that, and cannot consent with a forged form', async () => {
    const { on, page } = await d.toConsent({ scope: 'orders:write' }, d.users.narrow)
    expect(page.text).to.include('asks for more than you may do').and.not.include('value="allow"')
    const { left } = await decide(on, page, 'allow')
    expect(left?.searchParams.get('error')).to.equal('access_denied')
  })

  it('of another tenant are not logged in by their session', async () => {
    const theirs = await d.client({ client_id: 'theirs', public: true, tenant: `o-${d.mark}` })
    await d.settle()
    const on = d.browser()
    const consent = await logIn(
      on,
      await on.get(d.authorizeUrl({ client_id: theirs })),
      d.users.ofOtherTenant,
      d.password,
    )
    await decide(on, consent, 'allow')
    const silent = await on.get(d.authorizeUrl({ prompt: 'none' }))
    expect(silent.left?.searchParams.get('error')).to.equal('login_required')
    const reply = await on.get(d.authorizeUrl())
    expect(reply.text).to.include('<h1>Sign in</h1>')
    const switched = await logIn(on, reply, d.users.user, d.password)
    expect(switched.text).to.include(`<dd>${d.users.user}</dd>`)
    const { left } = await decide(on, switched, 'allow')
    expect(left?.searchParams.get('code')).to.be.a('string')
  })

  it('whose name is the id of the application are not identified as the application', async () => {
    const id = await d.client({ client_id: 'namesake', public: true })
    await addUser(d.dataDir, { username: id, tenant: d.tenant, scope: 'orders:read' }, d.password)
    await d.settle()
    const page = await tryLogin(id, d.password, { client_id: id })
    expect(page.text).to.include(WRONG)
  })

  it('who are removed, or have a new password, lose their sessions and grants', async () => {
    const names = ['gone', 'changed'].map(name => `${name}-${d.mark}`)
    for (const username of names)
      await addUser(d.dataDir, { username, tenant: d.tenant, scope: 'orders:read' }, d.password)
    await d.settle()
    const [gone = '', changed = ''] = names
    const before = [await d.tokens({}, gone), await d.tokens({}, changed)]
    await d.settle()
    await removeUser(d.dataDir, gone)
    await setPassword(d.dataDir, changed, 'another good password')
    await d.settle()
    for (const { refresh } of before) expect((await d.refresh(refresh)).body['error']).to.equal('invalid_grant')
    expect((await tryLogin(changed, d.password)).text).to.include(WRONG)
    expect((await tryLogin(changed, 'another good password')).text).to.include('to act for you?')
  })

  it('are refused after ten wrong passwords, even with the right one, and others are not', async () => {
    const username = `guessed-${d.mark}`
    const open = await loginPage()
    const guesses = await Promise.all(
      Array.from({ length: 14 }, () => logIn(open.on, open.page, username, 'wrong password')),
    )
    const statuses = guesses.map(({ status }) => status).toSorted((a, b) => a - b)
    expect(statuses).to.deep.equal([...Array<number>(10).fill(403), ...Array<number>(4).fill(429)])
    const late = await tryLogin(username, 'wrong password')
    expect(late.text).to.include('Too many attempts. Try again in 5 minutes.')
    expect(Number(late.headers.get('retry-after'))).to.be.within(1, 300)
    expect((await tryLogin(d.users.user, d.password)).status).to.equal(200)
  })

  describe('forms', () => {
    const expectForged = (seen: Seen): void => {
      expect([seen.status, seen.left]).to.deep.equal([403, undefined])
      expect(seen.text).to.include('did not come from our page')
    }

    it('are accepted from the issuer’s own pages only', async () => {
      const { on, page } = await loginPage()
      const other = formOf((await loginPage()).page)
      const { action, csrf } = formOf(page)
      const fields = { username: d.users.user, password: d.password }
      expectForged(await on.post(action, fields))
      expectForged(await on.post(action, { ...fields, csrf: '' }))
      expectForged(await on.post(action, { ...fields, csrf: other.csrf }))
      expectForged(await on.post(action, { ...fields, csrf }, { origin: 'https://evil.test' }))
      expectForged(await on.post(action, { ...fields, csrf }, { origin: 'null' }))
      expectForged(await on.post(action, { ...fields, csrf }, { 'sec-fetch-site': 'cross-site' }))
      expectForged(await on.post(action, { ...fields, csrf }, { 'sec-fetch-site': 'same-site' }))
      expectForged(await on.post(action, JSON.stringify({ ...fields, csrf }), { 'content-type': 'application/json' }))
      expectForged(await on.post(action, { ...fields, csrf, more: 'x'.repeat(20_000) }))
      expect((await on.post(action, { ...fields, csrf, more: 'x'.repeat(300_000) })).status).to.equal(413)
      const twice = `${new URLSearchParams({ ...fields, csrf }).toString()}&username=other`
      expectForged(await on.post(action, twice, { 'content-type': 'application/x-www-form-urlencoded' }))
      expect((await on.post(action, { ...fields, csrf })).text).to.include('to act for you?')
    })

    it('of a consent are accepted from its own page only', async () => {
      const { on, page } = await d.toConsent()
      const { action, csrf } = formOf(page)
      expectForged(await on.post(action, { decision: 'allow' }))
      expectForged(await on.post(action, { decision: 'allow', csrf }, { origin: 'https://evil.test' }))
      const odd = await on.get(action)
      expect(odd.status).to.equal(404)
      const { left } = await on.post(action, { decision: 'Allow', csrf })
      expect(left?.searchParams.get('error')).to.equal('access_denied')
    })

    it('are refused before their step', async () => {
      const { on, page } = await loginPage()
      const { action, csrf } = formOf(page)
      const early = await on.post(action.replace(/login$/, 'consent'), { csrf, decision: 'allow' })
      expect(early.text).to.include('<h1>Sign in</h1>')
      const resumed = await on.get(action.replace('/interaction/', '/auth/').replace(/\/login$/, ''))
      expect(resumed.text).to.include('<h1>Sign in</h1>')
    })
  })

  describe('another browser', () => {
    const expectExpired = (seen: Seen): void => {
      expect([seen.status, seen.left]).to.deep.equal([400, undefined])
      expect(seen.text).to.include('This sign-in has expired, or was begun in another browser.')
    }

    it('cannot continue a login that it did not begin', async () => {
      const { page } = await d.toConsent()
      const { action, csrf } = formOf(page)
      const [address, resume] = [action.replace(/\/consent$/, ''), action.replace('/interaction/', '/auth/')]
      expectExpired(await d.browser().get(address))
      expectExpired(await d.browser().post(action, { csrf, decision: 'allow' }))
      expectExpired(await d.browser().get(resume.replace(/\/consent$/, '')))
      expectExpired(await d.browser().get(`${d.issuer}/interaction/${'x'.repeat(43)}`))
    })

    it('cannot use a cookie that was tampered with, or that is of another login', async () => {
      const [mine, theirs] = [await loginPage(), await loginPage()]
      const { action } = formOf(theirs.page)
      const address = action.replace(/\/login$/, '')
      for (const [name, cookie] of mine.on.cookies)
        mine.on.cookies.set(name, { ...cookie, path: new URL(address).pathname })
      expectExpired(await mine.on.get(address))
      for (const [name, cookie] of theirs.on.cookies)
        if (!name.includes('.sig')) theirs.on.cookies.set(name, { ...cookie, value: withOtherEnd(cookie.value) })
      expectExpired(await theirs.on.get(address))
    })
  })

  describe('values in pages', () => {
    const SCRIPT = `<script>alert(1)</script>'"`

    it('are shown as text, whatever their origin', async () => {
      const name = '<img src=x onerror=alert(1)>'
      const id = await d.client({ client_id: 'marked', public: true, name })
      await d.settle()
      const pages = [
        (await loginPage({ client_id: id, state: SCRIPT })).page,
        (await d.toConsent({ client_id: id, state: SCRIPT })).page,
        await tryLogin(SCRIPT, SCRIPT, { state: SCRIPT }),
        await d.browser().get(d.authorizeUrl({ client_id: SCRIPT })),
        await d.browser().get(d.authorizeUrl({ redirect_uri: `http://127.0.0.1/${SCRIPT}` })),
        await d.browser().get(d.authorizeUrl({ redirect_uri: undefined, state: SCRIPT })),
      ]
      for (const { text, headers } of pages) {
        expect(text).to.match(/^<!doctype html>/)
        expect(text)
          .to.not.include('<script')
          .and.not.include('<img')
          .and.not.match(/<[^>]* on\w+=/)
        expect(headers.get('content-security-policy')).to.not.include('script').and.not.include('unsafe')
      }
      expect(pages[0]?.text).to.include('&lt;img src=x onerror=alert(1)&gt;')
    })

    it('are unchanged in the state of the redirect', async () => {
      const { left } = await d.browser().get(d.authorizeUrl({ prompt: 'none', state: SCRIPT }))
      expect(left?.searchParams.get('state')).to.equal(SCRIPT)
      expect(left?.href).to.not.include('<')
    })

    it('are on pages that no frame, cache or external resource can be part of', async () => {
      const { page } = await loginPage()
      expect(Object.fromEntries(page.headers)).to.include({
        'cache-control': 'no-store',
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'same-origin',
      })
      expect(page.headers.get('content-security-policy')).to.include("form-action 'self' http://127.0.0.1:4999;")
      expect(page.text).to.not.match(/(?:src|href)="(?!data:)/)
    })
  })

  it('have cookies that no script reads and no other site sends', async () => {
    const response = await fetch(d.authorizeUrl(), { redirect: 'manual' })
    const cookies = response.headers.getSetCookie()
    expect(cookies).to.have.length.above(1)
    for (const cookie of cookies) expect(cookie).to.match(/path=\/oauth\/.*samesite=lax.*httponly/i)
  })
})
