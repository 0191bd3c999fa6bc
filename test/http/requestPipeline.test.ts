import { expect } from 'chai'
import { anOrder, type Answer, aPayment, approvedInvoice, type Client, clientOf } from '../support/client.ts'
import { pay, wordsOf } from '../support/client.ts'
import { sharedService, type TestService } from '../support/service.ts'

const TENANT = 'pipeline'
const SUFFIX = '00000000000000000000000000'

describe('the request pipeline', () => {
  let service: TestService
  let client: Client
  let anonymous: Client
  before(async () => {
    service = await sharedService()
    anonymous = clientOf(service.api)
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
  })

  describe('authenticates', () => {
    it('and names the way to authenticate', async () => {
      for (const [headers, code] of [
        [{}, 'unauthenticated'],
        [{ authorization: '' }, 'token_invalid'],
        [{ authorization: 'Bearer' }, 'token_invalid'],
        [{ authorization: 'Bearer a.b.c' }, 'token_invalid'],
        [{ authorization: 'Bearer one two' }, 'token_invalid'],
        [{ authorization: 'Basic YTpi' }, 'token_invalid'],
        [{ 'x-api-key': 'lk_test_x_y_z' }, 'api_key_invalid'],
      ] as const) {
        const answer = await anonymous.get('/orders', headers)
        expect(answer.body, JSON.stringify(headers)).to.include({ status: 401, code })
        expect(answer.headers.get('www-authenticate')).to.match(/^Bearer/)
      }
    })

    it('and accepts one credential at most', async () => {
      const answer = await client.get('/orders', { 'x-api-key': 'lk_test_x_y_z' })
      expect(answer.body).to.include({ status: 400, code: 'multiple_credentials' })
    })

    it('before any other check', async () => {
      const raw = '{"broken'
      const answers = [
        await anonymous.request('POST', '/orders', { raw }),
        await anonymous.request('POST', '/payments', { raw, headers: { 'api-version': '1999-01-01' } }),
        await anonymous.get(`/orders/nonsense?x=1`),
        await anonymous.post(`/invoices/inv_${SUFFIX}:approve`, {}),
      ]
      for (const { body } of answers) expect(body).to.include({ status: 401, code: 'unauthenticated' })
    })

    it('and authorizes each operation by its own scope', async () => {
      const one = (scope: string) =>
        service.token({ tenant: TENANT, scopes: [scope] }).then(token => clientOf(service.api, token))
      const writer = await one('orders:write')
      expect((await writer.post('/orders', anOrder())).status).to.equal(201)
      const reader = await one('orders:read')
      const ifMatch = { headers: { 'if-match': '*' } }
      for (const [by, method, path] of [
        [writer, 'GET', '/orders'],
        [writer, 'GET', `/orders/ord_${SUFFIX}`],
        [reader, 'POST', '/orders'],
        [reader, 'DELETE', `/orders/ord_${SUFFIX}`],
        [reader, 'POST', `/orders/ord_${SUFFIX}:cancel`],
        [reader, 'GET', '/invoices'],
        [writer, 'POST', '/invoices'],
        [await one('invoices:write'), 'POST', `/invoices/inv_${SUFFIX}:approve`],
        [await one('invoice:approve'), 'POST', `/invoices/inv_${SUFFIX}:void`],
        [await one('payments:read'), 'POST', '/payments'],
        [await one('payments:write'), 'GET', '/payments'],
        [await one('payments:write'), 'GET', `/operations/op_${SUFFIX}`],
        [reader, 'GET', '/events'],
      ] as const) {
        const { body } = await by.request(method, path, { ...ifMatch, ...(method === 'POST' ? { body: {} } : {}) })
        expect(body, `${method} ${path}`).to.include({ status: 403, code: 'insufficient_scope' })
      }
    })

    it('by the credential alone', async () => {
      const order = await client.post('/orders', anOrder())
      expect(order.body).to.include({ tenant_id: TENANT, created_by: 'tester' })
      const claimed = await client.post('/orders', { ...anOrder(), tenant_id: 'other' })
      expect(claimed.body).to.include({ status: 400, code: 'validation_failed' })
    })
  })

  it('matches ids exactly: a malformed id is 404 like a missing one', async () => {
    const { body: order } = await client.post('/orders', anOrder())
    const missing = await client.get(`/orders/ord_${SUFFIX}`)
    expect(missing.body).to.include({ status: 404, code: 'resource_not_found' })
    for (const id of ['x', `inv_${SUFFIX}`, order.id.toLowerCase(), `${order.id}%00`, `..%2f${order.id}`]) {
      const answer = await client.get(`/orders/${id}`)
      expect({ ...wordsOf(answer), detail: missing.body.detail }, id).to.deep.equal(wordsOf(missing))
      expect(answer.body.detail).to.match(/^Must be an id, such as ord_/)
    }
  })

  describe('answers 404 for a resource that the caller cannot see', () => {
    const faults = [
      ['PATCH', '', { raw: '{"broken', headers: { 'content-type': 'application/merge-patch+json' } }, 400],
      ['PATCH', '', { raw: 'x', headers: { 'content-type': 'text/plain' } }, 415],
      ['PATCH', '', { raw: `"${'x'.repeat(70_000)}"`, headers: { 'content-type': 'application/json' } }, 413],
      ['POST', ':cancel', { body: { reason: 7 } }, 400],
      ['POST', ':cancel', { raw: `"${'x'.repeat(70_000)}"` }, 413],
      ['POST', ':cancel', { body: { reason: 'no If-Match' } }, 428],
      ['GET', '?unknown=1', {}, 400],
      ['GET', '/history?unknown=1', {}, 400],
      ['GET', '', { headers: { 'api-version': '1999-01-01' } }, 400],
    ] as const

    it('before faults of the content, and the faults of a visible one', async () => {
      const mine = await client.post('/orders', anOrder())
      const stranger = clientOf(service.api, await service.token({ tenant: 'pipeline-other' }))
      for (const [method, rest, sent, status] of faults) {
        const name = `${method} ${rest} ${status}`
        const ask = (by: Client, id: string) => by.request(method, `/orders/${id}${rest}`, sent)
        expect((await ask(client, mine.body.id)).status, name).to.equal(status)
        const missing = await ask(client, `ord_${SUFFIX}`)
        expect(missing.body, name).to.include({ status: 404, code: 'resource_not_found' })
        expect(wordsOf(await ask(stranger, mine.body.id)), name).to.deep.equal(wordsOf(missing))
      }
    })

    it('except for the history of a deleted one', async () => {
      const order = await client.post('/orders', anOrder())
      const ifMatch = { headers: { 'if-match': order.headers.get('etag') ?? '' } }
      expect((await client.request('DELETE', `/orders/${order.body.id}`, ifMatch)).status).to.equal(204)
      expect((await client.get(`/orders/${order.body.id}/history?unknown=1`)).status).to.equal(400)
      expect((await client.get(`/orders/${order.body.id}?unknown=1`)).status).to.equal(404)
    })
  })

  it('serves one API version, and names it', async () => {
    const version = '2026-11-01'
    for (const headers of [{}, { 'api-version': version }])
      expect((await client.get('/orders?limit=1', headers)).headers.get('api-version')).to.equal(version)
    const other = await client.get('/orders?limit=1', { 'api-version': '2026-11-02' })
    expect(other.body).to.include({ status: 400, code: 'unsupported_api_version' })
    expect(other.headers.get('api-version')).to.equal(version)
  })

  it('answers HEAD as it would answer GET, without the content', async () => {
    const order = await client.post('/orders', anOrder())
    for (const path of [
      order.headers.get('location') ?? '',
      '/orders?limit=1',
      '/events?limit=1',
      '/openapi.json',
      '/livez',
      `/orders/ord_${SUFFIX}`,
    ]) {
      const [head, get] = [await client.request('HEAD', path), await client.get(path)]
      expect([head.status, head.text], path).to.deep.equal([get.status, ''])
      for (const name of ['content-type', 'content-length', 'etag', 'cache-control'])
        if (name !== 'content-length' || !path.includes('?'))
          expect(head.headers.get(name), `${path} ${name}`).to.equal(get.headers.get(name))
    }
    const cached = { headers: { 'if-none-match': order.headers.get('etag') ?? '' } }
    expect((await client.request('HEAD', order.headers.get('location') ?? '', cached)).status).to.equal(304)
    const stream = await client.request('HEAD', '/events', { headers: { accept: 'text/event-stream' } })
    expect([stream.status, stream.headers.get('content-type')]).to.deep.equal([200, 'text/event-stream'])
  })

  it('reveals no more than the problem', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const answers: Answer[] = [
      await client.request('POST', '/orders', { raw: '{"a":' }),
      await client.get('/unknown?secret=hunter2'),
      await client.get(`/orders?cursor=hunter2`),
      await pay(client, aPayment(invoiceId, { amount: 10_000 })),
      await anonymous.get('/orders', { authorization: 'Bearer hunter2.hunter2.hunter2' }),
    ]
    for (const { status, text, body } of answers) {
      expect(status).to.be.within(400, 499)
      expect(text).not.to.match(/hunter2|node:|\.ts\b|:\d+:\d+|select |postgres|\/work|Error:/)
      expect(body.instance).not.to.include('?')
      expect(body.retry.retryable).to.equal(false)
    }
  })
})
