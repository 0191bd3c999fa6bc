import { expect } from 'chai'
import { isFromThisMachine } from '../../src/embedded/issuer/loopback.ts'
import { newPkce, openBrowser } from './browser.ts'
import { sharedService, type TestService } from '../support/service.ts'

/** Signing in without a password: at the console of this machine, and nowhere else. */

describe('identity: development users of the console', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })

  const authorize = (changes: Readonly<Record<string, string>> = {}): string =>
    `${service.addresses.issuer}/auth?${new URLSearchParams({
      client_id: 'console',
      response_type: 'code',
      redirect_uri: `${service.api}/console`,
      scope: 'openid orders:read payments:settle',
      state: 'st-1',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
      ...changes,
    }).toString()}`

  const open = () => openBrowser(new URL(service.addresses.issuer).origin)
  const fieldsOf = (text: string): { action: string; csrf: string } => ({
    action: /action="([^"]+\/login)"/.exec(text)?.[1] ?? '',
    csrf: /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? '',
  })

  it('are offered at the console, and get a code with a click, within their scopes', async () => {
    const browser = open()
    const page = await browser.get(authorize())
    expect(page.text).to.include('value="alice"').and.to.include('value="carol"')
    const { action, csrf } = fieldsOf(page.text)
    const back = await browser.post(service.api + action, { csrf, as: 'bob' })
    expect(back.url).to.match(/\/console\?code=/)
  })

  it('are not offered to another application, nor accepted for it', async () => {
    const browser = open()
    const page = await browser.get(
      authorize({
        client_id: 'docs-acme',
        redirect_uri: `${service.api}/docs/oauth2-redirect.html`,
        scope: 'orders:read',
      }),
    )
    expect(page.text).not.to.include('name="as"')
    const { action, csrf } = fieldsOf(page.text)
    const refused = await browser.post(service.api + action, { csrf, as: 'bob' })
    expect([refused.status, refused.text.includes('That did not work')]).to.deep.equal([403, true])
  })

  it('stay signed in at the console, and nowhere else on this machine', async () => {
    const browser = open()
    const { action, csrf } = fieldsOf((await browser.get(authorize())).text)
    await browser.post(service.api + action, { csrf, as: 'bob' })
    expect((await browser.get(authorize())).url).to.match(/\/console\?code=/)
    const elsewhere = await browser.get(authorize({ redirect_uri: 'http://localhost:4999/console' }))
    expect([elsewhere.status, elsewhere.left]).to.deep.equal([400, undefined])
  })

  it('are for requests from this machine to its own name', () => {
    const at = (host: string, address: string): boolean => isFromThisMachine({ headers: { host } }, address)
    expect([
      at('localhost:8080', '127.0.0.1'),
      at('127.0.0.1', '::ffff:127.0.0.1'),
      at('[::1]:1', '::1'),
    ]).to.deep.equal([true, true, true])
    for (const [host, address] of [
      ['localhost', '192.0.2.7'],
      ['ledger.example', '127.0.0.1'],
      ['127.0.0.1.evil.example', '127.0.0.1'],
      ['', '127.0.0.1'],
    ] as const)
      expect(at(host, address), `${host} ${address}`).to.equal(false)
  })
})
