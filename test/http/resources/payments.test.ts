import { expect } from 'chai'
import {
  type Answer,
  anOrder,
  aPayment,
  approvedInvoice,
  type Client,
  clientOf,
  isReplay,
  newKey,
  pay,
  recordOf,
} from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

const TENANT = 'payments'

const pointersOf = (answer: Answer): string[] => answer.body.errors.map((error: { pointer: string }) => error.pointer)

describe('POST /payments under one Idempotency-Key', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
  })

  const paidOf = async (invoiceId: string): Promise<number> =>
    (await client.get(`/invoices/${invoiceId}`)).body.amount_paid
  const paymentsOf = async (invoiceId: string, count: number): Promise<{ id: string }[]> =>
    eventually(async () => {
      const { items } = (await client.get(`/payments?invoice_id=${invoiceId}`)).body
      return items.length >= count && items
    })

  it('makes one payment of fifty concurrent requests, with the same response for all', async () => {
    const { invoiceId } = await approvedInvoice(client, 10_000)
    const key = newKey()
    const answers = await Promise.all(Array.from({ length: 50 }, () => pay(client, aPayment(invoiceId), key)))
    for (const { status, text } of answers) expect(status, text).to.be.oneOf([201, 202])
    const done = answers.filter(({ status }) => status === 201)
    const created = done.filter(answer => !isReplay(answer))
    // On a busy machine the creating request may itself be answered with 202.
    expect(created.length).to.be.within(done.length === answers.length ? 1 : 0, 1)
    const replay = await eventually(async () => {
      const answer = await pay(client, aPayment(invoiceId), key)
      return answer.status === 201 && answer
    })
    const record = recordOf(replay)
    expect(record.location).to.match(/^\/payments\/pay_[0-9A-HJKMNP-TV-Z]{26}$/)
    for (const answer of done) expect(recordOf(answer)).to.deep.equal(record)
    expect(await paidOf(invoiceId)).to.equal(100)
    const payments = await paymentsOf(invoiceId, 1)
    expect(payments.map(({ id }) => `/payments/${id}`)).to.deep.equal([record.location])
  })

  it('replays the first response after the resource has changed, and marks it as a replay', async () => {
    const { invoiceId } = await approvedInvoice(client, 100)
    const key = newKey()
    const first = await pay(client, aPayment(invoiceId, { reference: `moved on ${key}` }), key)
    expect(first.status).to.equal(201)
    expect(isReplay(first)).to.equal(false)
    expect((await client.get(`/invoices/${invoiceId}`)).body.state).to.equal('paid')
    const again = await pay(client, aPayment(invoiceId, { reference: `moved on ${key}` }), key)
    expect(isReplay(again)).to.equal(true)
    expect(recordOf(again)).to.deep.equal(recordOf(first))
  })

  it('treats members in another order and numbers in another form as the same request', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey()
    const post = (raw: string) => client.request('POST', '/payments', { raw, headers: { 'idempotency-key': key } })
    const first = await post(`{"invoice_id":"${invoiceId}","amount":10,"currency":"USD","metadata":{"b":"1","a":"2"}}`)
    expect(first.status).to.equal(201)
    for (const [amount, metadata] of [
      ['10.0', '{"a":"2","b":"1"}'],
      ['1e1', '{"b":"1","a":"2"}'],
      ['1000e-2', '{ "a" : "\\u0032", "b":"1"}'],
    ]) {
      const again = await post(
        ` {"currency":"USD","metadata":${metadata},"settlement":"immediate","reference":null,"amount":${amount},"invoice_id":"${invoiceId}"}\n`,
      )
      expect(recordOf(again), amount).to.deep.equal(recordOf(first))
    }
    expect(await paidOf(invoiceId)).to.equal(10)
  })

  it('refuses a changed request, names the members that differ, and not their values', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey()
    const metadata = { 'a/b': 'secret-1', same: 'x' }
    expect((await pay(client, aPayment(invoiceId, { metadata }), key)).status).to.equal(201)
    const changed = {
      amount: 10_100_101,
      metadata: { 'a/b': 'secret-2', same: 'x', 'new~': 'y' },
      settlement: 'deferred',
    }
    const refused = await pay(client, aPayment(invoiceId, changed), key)
    expect(refused.body).to.include({ status: 422, code: 'idempotency_key_reused' })
    expect(pointersOf(refused)).to.have.members(['/amount', '/metadata/a~1b', '/metadata/new~0', '/settlement'])
    expect(refused.text).not.to.match(/secret|10100101/)
    expect(await paidOf(invoiceId)).to.equal(100)
  })

  it('treats a quoted and a bare key as the same', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey()
    const first = await pay(client, aPayment(invoiceId), key)
    for (const spelling of [`"${key}"`, ` ${key} `]) {
      const again = await pay(client, aPayment(invoiceId), spelling)
      expect(recordOf(again), spelling).to.deep.equal(recordOf(first))
    }
    const escaped = await pay(client, aPayment(invoiceId), `"\\"${key}\\\\"`)
    expect(escaped.status).to.equal(201)
    expect(escaped.body.id).not.to.equal(first.body.id)
  })

  it('accepts a key of 255 characters', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey().padEnd(255, '~')
    const first = await pay(client, aPayment(invoiceId), key)
    expect(first.status).to.equal(201)
    expect((await pay(client, aPayment(invoiceId), `${key.slice(0, -1)}!`)).body.id).not.to.equal(first.body.id)
  })

  it('refuses a missing and a malformed key', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const missing = await client.post('/payments', aPayment(invoiceId))
    expect(missing.body).to.include({ status: 400, code: 'idempotency_key_missing' })
    for (const key of ['', '""', 'two words', '"two words"', 'x'.repeat(256), '"open', 'mid"dle', 'é', '"a", "b"']) {
      const { body } = await pay(client, aPayment(invoiceId), key)
      expect(body, key).to.include({ status: 400, code: 'idempotency_key_invalid' })
    }
    expect(await paidOf(invoiceId)).to.equal(0)
  })

  it('replays to a fresh token of the same caller, and pays again for another subject', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey()
    const first = await pay(client, aPayment(invoiceId), key)
    const fresh = clientOf(service.api, await service.token({ tenant: TENANT }))
    expect(recordOf(await pay(fresh, aPayment(invoiceId), key))).to.deep.equal(recordOf(first))
    const ids = new Set([first.body.id])
    // A caller is identified by subject and client; users of the command line share one client.
    for (const who of [
      { subject: 'else' },
      { subject: 'ann', user: true },
      { subject: 'bob', user: true },
      { user: true },
    ]) {
      const other = clientOf(service.api, await service.token({ tenant: TENANT, ...who }))
      const another = await pay(other, aPayment(invoiceId), key)
      expect(another.status).to.equal(201)
      expect(isReplay(another)).to.equal(false)
      ids.add(another.body.id)
    }
    expect(ids.size).to.equal(5)
    expect(await paidOf(invoiceId)).to.equal(500)
  })

  it('authenticates and authorizes a replay again', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey()
    expect((await pay(client, aPayment(invoiceId), key)).status).to.equal(201)
    const anonymous = await pay(clientOf(service.api), aPayment(invoiceId), key)
    expect(anonymous.body).to.include({ status: 401, code: 'unauthenticated' })
    const reader = clientOf(service.api, await service.token({ tenant: TENANT, scopes: ['payments:read'] }))
    const refused = await pay(reader, aPayment(invoiceId), key)
    expect(refused.body).to.include({ status: 403, code: 'insufficient_scope' })
    for (const answer of [anonymous, refused]) expect(isReplay(answer)).to.equal(false)
  })

  it('replays orders and invoices that were created with a key, byte for byte', async () => {
    const order = {
      metadata: { z: '1', a: '2' },
      lines: [{ unit_amount: 5, quantity: 2, description: 'green', sku: 'tea' }],
      currency: 'EUR',
    }
    const key = { 'idempotency-key': newKey() }
    const first = await client.post('/orders', order, key)
    const invoice = await client.post('/invoices', { order_id: first.body.id, metadata: { q: 'r' } }, key)
    expect([first.status, invoice.status]).to.deep.equal([201, 201])
    await client.post(`/invoices/${invoice.body.id}:approve`, {}, { 'if-match': invoice.headers.get('etag') ?? '' })
    expect(recordOf(await client.post('/orders', order, key))).to.deep.equal(recordOf(first))
    const again = await client.post('/invoices', { metadata: { q: 'r' }, order_id: first.body.id }, key)
    expect(recordOf(again)).to.deep.equal(recordOf(invoice))
    expect(isReplay(again)).to.equal(true)
    const reused = await client.post('/orders', anOrder(1), key)
    expect(reused.body).to.include({ status: 422, code: 'idempotency_key_reused' })
  })
})
