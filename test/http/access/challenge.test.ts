import { expect } from 'chai'
import { clientOf, retryingFetch } from '../../support/client.ts'
import { checkEvery } from '../../support/openapiCheck.ts'
import { sharedService, type TestService } from '../../support/service.ts'

/** WWW-Authenticate of refusals: RFC 6750, section 3, and RFC 9728, section 5.1. */
describe('http: WWW-Authenticate', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })

  const challenge = async (headers: Readonly<Record<string, string>>, path = '/orders'): Promise<string | null> =>
    (await clientOf(service.api).get(path, headers)).headers.get('www-authenticate')
  const metadata = (): string => `Bearer resource_metadata="${service.api}/.well-known/oauth-protected-resource"`

  it('has no error without a credential', async () => {
    expect(await challenge({})).to.equal(metadata())
  })

  it('names the error of a credential that was sent', async () => {
    const refused: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
      [{ authorization: 'Bearer none' }, 'The access token is not valid for this service.'],
      [{ authorization: 'Basic bm9uZTpub25l' }, 'The access token is not valid for this service.'],
      [{ 'x-api-key': 'lk_dev_none' }, 'The API key is not valid.'],
    ]
    for (const [headers, words] of refused)
      expect(await challenge(headers)).to.equal(`${metadata()}, error="invalid_token", error_description="${words}"`)
  })

  it('names the missing scope', async () => {
    const token = await service.token({ tenant: 'challenges', scopes: ['invoices:read'] })
    expect(await challenge({ authorization: `Bearer ${token}` })).to.equal(
      `${metadata()}, error="insufficient_scope", error_description="The credential lacks a scope that this operation requires.", scope="orders:read"`,
    )
  })

  it('is absent from a 403 that no other scope would prevent', async () => {
    const token = await service.token({ tenant: 'challenges', user: true })
    const client = clientOf(service.api, token)
    const answer = await client.post('/payments/pay_00000000000000000000000000:settle', {})
    expect([answer.body.code, answer.headers.get('www-authenticate')]).to.deep.equal(['credential_not_permitted', null])
  })
})

/** The embedded issuer serves the paths below /oauth, with the same headers as all other responses. */
describe('http: responses below /oauth', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })

  const ID = 'challenges-12345'
  const ask = async (method: string, path: string, init: RequestInit = {}) => {
    const headers = { 'x-correlation-id': ID, ...(init.headers as Record<string, string> | undefined) }
    const response = await retryingFetch(`${service.api}/oauth${path}`, {
      redirect: 'manual',
      ...init,
      method,
      headers,
    })
    const text = await response.text()
    expect(response.headers.get('x-correlation-id'), `${method} ${path}`).to.equal(ID)
    for (const name of ['api-version', 'cache-control', 'x-content-type-options'])
      expect(response.headers.get(name), `${method} ${path}: ${name}`).to.be.a('string').and.not.equal('')
    return { status: response.status, headers: response.headers, text }
  }

  it('have the common headers with every status', async () => {
    const form = (fields: Readonly<Record<string, string>>) => ({ body: new URLSearchParams(fields) })
    const answers = [
      await ask('GET', '/jwks'),
      await ask('GET', '/.well-known/openid-configuration'),
      await ask('GET', '/auth?client_id=none'),
      await ask('GET', '/interaction/none'),
      await ask('POST', '/token', form({ grant_type: 'client_credentials' })),
      await ask('POST', '/token', { body: 'x'.repeat(70_000) }),
      await ask('POST', '/token', { body: '{}', headers: { 'content-type': 'application/json' } }),
      await ask('POST', '/revoke', form({ token: 'none' })),
      await ask('OPTIONS', '/token', {
        headers: { origin: 'https://page.test', 'access-control-request-method': 'POST' },
      }),
    ]
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 400, 400, 400, 413, 400, 400, 204])
  })

  it('are OAuth errors at the endpoints of OAuth', async () => {
    const { status, headers, text } = await ask('POST', '/token', {
      headers: { authorization: 'Basic bm9uZTpub25l' },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    })
    expect([status, JSON.parse(text).error]).to.deep.equal([401, 'invalid_client'])
    expect(headers.get('content-type')).to.match(/^application\/json/)
    expect(headers.get('www-authenticate')).to.match(/^Basic /)
    expect(headers.get('cache-control')).to.equal('no-store')
  })

  it('are problems for an unknown path or method', async () => {
    const refused: readonly (readonly [string, string, number, string | null])[] = [
      ['GET', '/nothing', 404, null],
      ['GET', '/token', 405, 'POST, OPTIONS'],
      ['POST', '/auth', 405, 'GET'],
      ['DELETE', '/jwks', 405, 'GET, HEAD'],
      ['POST', '/.well-known/openid-configuration', 405, 'GET, HEAD'],
    ]
    for (const [method, path, status, allow] of refused) {
      const answer = await ask(method, path)
      expect([answer.status, answer.headers.get('allow')], `${method} ${path}`).to.deep.equal([status, allow])
      checkEvery({ method, path: `/oauth${path}`, ...answer, body: JSON.parse(answer.text) })
    }
  })
})
