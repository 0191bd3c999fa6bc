import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import {
  type Answer,
  anOrder,
  aPayment,
  approvedInvoice,
  type Client,
  clientOf,
  newKey,
  pay,
  wordsOf,
} from '../../support/client.ts'
import { sharedService, type TestService, writtenBy } from '../../support/service.ts'

const TENANT = 'refusals'
const MISSING = 'inv_00000000000000000000000000'

describe('POST /payments refuses', () => {
  let service: TestService
  let client: Client
  let store: EventStore
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
    store = openEventStore({ connectionString: service.addresses.event_store })
  })
  after(() => store.close())

  const refuses = async (payment: object, status: number, code: string): Promise<Answer> => {
    const answer = await pay(client, payment)
    expect(answer.body, JSON.stringify(payment)).to.include({ status, code })
    return answer
  }

  it('another currency than the invoice’s', async () => {
    const { invoiceId } = await approvedInvoice(client)
    await refuses(aPayment(invoiceId, { currency: 'EUR' }), 409, 'payment_not_allowed')
  })

  it('an invoice that is not approved, or is voided', async () => {
    const order = await client.post('/orders', anOrder())
    const invoice = await client.post('/invoices', { order_id: order.body.id })
    await refuses(aPayment(invoice.body.id), 409, 'payment_not_allowed')
    const ifMatch = { 'if-match': invoice.headers.get('etag') ?? '' }
    expect((await client.post(`/invoices/${invoice.body.id}:void`, { reason: 'wrong' }, ifMatch)).status).to.equal(200)
    await refuses(aPayment(invoice.body.id), 409, 'payment_not_allowed')
  })

  it('more than is due, with the amount that is due', async () => {
    const { invoiceId } = await approvedInvoice(client, 250)
    expect((await pay(client, aPayment(invoiceId))).status).to.equal(201)
    const refused = await refuses(aPayment(invoiceId, { amount: 151 }), 409, 'payment_exceeds_due')
    expect(refused.body).to.include({
      detail: '150 of 250 is still due (minor units of USD). Pay at most that, with a new Idempotency-Key.',
      still_due: 150,
      currency: 'USD',
    })
    expect((await pay(client, aPayment(invoiceId, { amount: 150 }))).status).to.equal(201)
    await refuses(aPayment(invoiceId, { amount: 1 }), 409, 'payment_exceeds_due')
  })

  it('an invoice of another tenant like an unknown one', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const otherTenant = clientOf(service.api, await service.token({ tenant: 'refusals-2' }))
    const [theirs, missing] = await Promise.all([
      pay(otherTenant, aPayment(invoiceId)),
      pay(otherTenant, aPayment(MISSING)),
    ])
    expect(wordsOf(theirs)).to.deep.equal(wordsOf(missing))
    expect(theirs.body).to.include({ status: 404, code: 'resource_not_found' })
  })

  it('a reference of another payment of the tenant, for ever, and names that payment', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const reference = `order of ${newKey()}`
    const first = await pay(client, aPayment(invoiceId, { reference }))
    expect(first.status).to.equal(201)
    const after = await store.head()
    const refused = await refuses(aPayment(invoiceId, { reference }), 409, 'payment_reference_conflict')
    expect(refused.body.detail).to.include(first.body.id)
    expect(await writtenBy(store, { after, answers: [refused] })).to.deep.equal([])
    const otherTenant = clientOf(service.api, await service.token({ tenant: 'refusals-2' }))
    const theirs = await approvedInvoice(otherTenant)
    expect((await pay(otherTenant, aPayment(theirs.invoiceId, { reference }))).status).to.equal(201)
  })

  it('all but one of twenty concurrent payments with one reference, which do not change the invoice', async () => {
    const { invoiceId } = await approvedInvoice(client, 10_000)
    const reference = `race for ${newKey()}`
    const keys = Array.from({ length: 20 }, newKey)
    const answers = await Promise.all(keys.map(key => pay(client, aPayment(invoiceId, { reference }), key)))
    const [winner, ...others] = answers.filter(({ status }) => status === 201)
    expect(others).to.deep.equal([])
    for (const answer of answers) {
      expect(answer.headers.has('idempotent-replayed')).to.equal(false)
      if (answer === winner) continue
      expect(answer.body).to.include({ status: 409, code: 'payment_reference_conflict' })
      expect(answer.body.detail).to.include(winner?.body.id)
    }
    expect((await client.get(`/invoices/${invoiceId}`)).body.amount_paid).to.equal(100)
    const again = await Promise.all(keys.map(key => pay(client, aPayment(invoiceId, { reference }), key)))
    expect(again.map(({ status }) => status)).to.deep.equal(answers.map(({ status }) => status))
  })

  it('without using the key, which is free for the corrected request', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const key = newKey()
    const after = await store.head()
    const reader = clientOf(service.api, await service.token({ tenant: TENANT, scopes: ['payments:read'] }))
    const answers = [
      await pay(clientOf(service.api), aPayment(invoiceId), key),
      await pay(reader, aPayment(invoiceId), key),
      await pay(client, aPayment(MISSING), key),
      await pay(client, aPayment(invoiceId, { amount: 0 }), key),
      await pay(client, aPayment(invoiceId, { amount: 901 }), key),
      await pay(client, aPayment(invoiceId, { currency: 'EUR' }), key),
      await pay(client, aPayment(invoiceId, { extra: 1 }), key),
    ]
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 403, 404, 400, 409, 409, 400])
    expect(await writtenBy(store, { after, answers })).to.deep.equal([])
    const corrected = await pay(client, aPayment(invoiceId), key)
    expect(corrected.status).to.equal(201)
    expect(corrected.headers.has('idempotent-replayed')).to.equal(false)
    // The helper is checked too: it finds the event of a successful payment.
    expect(await writtenBy(store, { after, answers: [corrected] })).to.include('PaymentSucceeded')
  })

  it('amounts that a pending deferred payment has reserved', async () => {
    const { invoiceId } = await approvedInvoice(client, 300)
    const key = newKey()
    const deferred = await pay(client, aPayment(invoiceId, { amount: 200, settlement: 'deferred' }), key)
    expect(deferred.status).to.equal(201)
    expect(deferred.body).to.include({ state: 'pending', settlement: 'deferred', amount: 200 })
    const reserved = (await client.get(`/invoices/${invoiceId}`)).body
    expect(reserved).to.include({ state: 'approved', amount_paid: 0, amount_pending: 200 })
    await refuses(aPayment(invoiceId, { amount: 101 }), 409, 'payment_exceeds_due')
    expect((await pay(client, aPayment(invoiceId, { amount: 100 }))).status).to.equal(201)
    expect((await client.get(deferred.headers.get('location') ?? '')).body.state).to.equal('pending')
    const ifMatch = { 'if-match': '*' }
    const voided = await client.post(`/invoices/${invoiceId}:void`, { reason: 'no' }, ifMatch)
    expect(voided.body).to.include({ status: 409, code: 'invoice_state_conflict' })
  })
})
