import { expect } from 'chai'
import { routes } from '../../../src/http/index.ts'
import { PROBLEMS } from '../../../src/http/problems/problemCatalogue.ts'
import { anOrder, approvedInvoice, type Client, clientOf, newKey } from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { caller, startVariant } from '../../support/serviceVariants.ts'
import { examples } from '../requestExamples.ts'

describe('the outcome of a key', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'keys' }))
  })
  const outcome = async (key: string, operation?: string) =>
    (await client.get(`/idempotency-keys/${encodeURIComponent(key)}${operation ? `?operation=${operation}` : ''}`)).body

  it('is never_seen, then succeeded with a link to the payment', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = 'order/17-of:May'
    expect(await outcome(key)).to.deep.equal({
      operation: 'create_payment',
      status: 'never_seen',
      expires_at: null,
      links: {},
    })
    const paid = await client.post(
      '/payments',
      { invoice_id: invoiceId, amount: 1, currency: 'USD' },
      { 'idempotency-key': `"${key}"` },
    )
    const keyOutcome = await outcome(key)
    expect(keyOutcome).to.deep.include({ status: 'succeeded' })
    expect(keyOutcome.links.result).to.equal(paid.headers.get('location'))
    expect((await client.get(keyOutcome.links.operation)).body).to.deep.include({
      state: 'succeeded',
      result: { href: `/payments/${paid.body.id}` },
    })
    expect((await outcome(`"${key}"`)).status, 'quoted').to.equal('succeeded')
  })

  it('is visible to its own caller only, and by its own operation', async () => {
    const key = newKey()
    await client.post('/orders', anOrder(), { 'idempotency-key': key })
    expect((await outcome(key, 'create_order')).status).to.equal('succeeded')
    expect((await outcome(key)).status).to.equal('never_seen')
    const other = clientOf(service.api, await service.token({ tenant: 'keys', subject: 'another' }))
    const reply = await other.get(`/idempotency-keys/${key}?operation=create_order`)
    expect(reply.body.status).to.equal('never_seen')
  })

  for (const { operationId, idempotencyKey } of routes)
    if (idempotencyKey)
      it(`is succeeded after ${operationId}, with a link to the resource`, async () => {
        const { path, body = {}, headers = {} } = (await examples[operationId]?.(client)) ?? { path: '' }
        const answer = await client.post(path, body, headers)
        expect(answer.status, answer.text).to.be.within(200, 299)
        const { status, links } = await outcome(headers['Idempotency-Key'] ?? '', operationId)
        expect(status).to.equal('succeeded')
        expect((await client.get(links.result)).status).to.equal(200)
      })

  it('is never_seen for a rotation and a replay that were refused: their keys are free', async () => {
    const issued = await client.post('/api-keys', { name: 'nightly', scopes: ['orders:read'] })
    await client.request('DELETE', `/api-keys/${issued.body.id}`)
    const { path, body, headers = {} } = (await examples['replay_subscription']?.(client)) ?? { path: '' }
    const full = await startVariant(service, {
      authenticate: async () => ({ ...caller, tenant: 'keys' }),
      services: usual => ({ ...usual, ledger: { ...usual.ledger, changesMax: 1 } }),
    })
    const by = clientOf(full.api)
    const key = headers['Idempotency-Key'] ?? ''
    const refused = [
      await by.post(`/api-keys/${issued.body.id}:rotate`, {}, { 'idempotency-key': key }),
      await by.post(path, body, headers),
    ]
    expect(refused.map(answer => answer.body.code)).to.deep.equal(['resource_not_found', 'too_many_changes'])
    for (const operation of ['rotate_api_key', 'replay_subscription'])
      expect((await by.get(`/idempotency-keys/${key}?operation=${operation}`)).body.status).to.equal('never_seen')
    await full.close()
  })

  it('is known for refunds and invoices too', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const order = await client.post('/orders', anOrder())
    const invoiceKey = newKey()
    await client.post('/invoices', { order_id: order.body.id }, { 'idempotency-key': invoiceKey })
    expect((await outcome(invoiceKey, 'raise_invoice')).status).to.equal('succeeded')
    const body = { invoice_id: invoiceId, amount: 5, currency: 'USD' }
    const paid = await client.post('/payments', body, { 'idempotency-key': newKey() })
    const refundKey = newKey()
    await client.post(`/payments/${paid.body.id}:refund`, { reason: 'x' }, { 'idempotency-key': refundKey })
    expect((await outcome(refundKey, 'refund_payment')).links.result).to.equal(`/payments/${paid.body.id}`)
  })

  it('is 400 for a malformed key, and for an operation without keys', async () => {
    expect((await client.get('/idempotency-keys/%22a')).body.code).to.equal('idempotency_key_invalid')
    expect((await client.get('/idempotency-keys/a?operation=read_order')).body.code).to.equal('validation_failed')
  })
})

describe('the problem pages', () => {
  it('include one for every code, and none for another', async () => {
    const { api } = await sharedService()
    const client = clientOf(api)
    for (const code of Object.keys(PROBLEMS)) {
      const page = await client.get(`/problems/${code}`)
      expect([page.status, page.headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8'])
      expect(page.text).to.contain(code)
    }
    expect((await client.get('/problems/constructor')).status).to.equal(404)
  })
})
