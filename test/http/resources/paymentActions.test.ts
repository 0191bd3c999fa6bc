import { expect } from 'chai'
import { approvedInvoice, type Client, clientOf, newKey } from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'

describe('settlement and refunds', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'settlement' }))
  })

  const pay = async (amount: number, settlement: 'immediate' | 'deferred', due = amount) => {
    const { invoiceId } = await approvedInvoice(client, due)
    const body = { invoice_id: invoiceId, amount, currency: 'USD', settlement }
    const paid = await client.post('/payments', body, { 'idempotency-key': newKey() })
    expect(paid.status).to.equal(201)
    return { invoiceId, payment: paid.body, invoice: async () => (await client.get(`/invoices/${invoiceId}`)).body }
  }
  const refund = (id: string, body: object, key = newKey()) =>
    client.post(`/payments/${id}:refund`, body, { 'idempotency-key': key })

  describe('a deferred payment', () => {
    it('reserves its amount until it settles and pays the invoice, and does not change when it is settled again', async () => {
      const { payment, invoice } = await pay(700, 'deferred')
      expect(payment.state).to.equal('pending')
      expect(await invoice()).to.include({ state: 'approved', amount_pending: 700, amount_paid: 0 })
      const settled = await client.post(`/payments/${payment.id}:settle`)
      expect(settled.body).to.include({ state: 'succeeded' })
      expect(await invoice()).to.include({ state: 'paid', amount_pending: 0, amount_paid: 700 })
      const again = await client.post(`/payments/${payment.id}:settle`)
      expect(again.text).to.equal(settled.text)
      expect(again.headers.get('etag')).to.equal(settled.headers.get('etag'))
    })

    it('releases its amount when it fails, so that another payment can use it', async () => {
      const { payment, invoice, invoiceId } = await pay(700, 'deferred')
      const failed = await client.post(`/payments/${payment.id}:fail`, { code: 'insufficient_funds' })
      expect(failed.body).to.deep.include({ state: 'failed', failure: { code: 'insufficient_funds' } })
      expect(await invoice()).to.include({ state: 'approved', amount_pending: 0, amount_paid: 0 })
      const body = { invoice_id: invoiceId, amount: 700, currency: 'USD' }
      expect((await client.post('/payments', body, { 'idempotency-key': newKey() })).status).to.equal(201)
      expect(await invoice()).to.include({ state: 'paid' })
    })

    it('is settled or failed, not both', async () => {
      const { payment, invoice } = await pay(700, 'deferred')
      const answers = await Promise.all(
        ['settle', 'fail'].flatMap(verb =>
          Array.from({ length: 5 }, () => client.post(`/payments/${payment.id}:${verb}`)),
        ),
      )
      const { state } = (await client.get(`/payments/${payment.id}`)).body
      const lost = answers.filter(({ status }) => status === 409)
      expect(lost.map(({ body }) => body.code)).to.deep.equal(Array(5).fill('payment_state_conflict'))
      const { amount_paid, amount_pending } = await invoice()
      expect([amount_paid, amount_pending]).to.deep.equal([state === 'succeeded' ? 700 : 0, 0])
    })

    it('is neither settled by users nor visible to another tenant', async () => {
      const { payment } = await pay(700, 'deferred')
      const user = clientOf(service.api, await service.token({ tenant: 'settlement', user: true, subject: 'ann' }))
      const asUser = await user.post(`/payments/${payment.id}:settle`)
      expect([asUser.status, asUser.body.code]).to.deep.equal([403, 'credential_not_permitted'])
      const otherTenant = clientOf(service.api, await service.token({ tenant: 'another' }))
      expect((await otherTenant.post(`/payments/${payment.id}:settle`)).status).to.equal(404)
      expect((await client.get(`/payments/${payment.id}`)).body.state).to.equal('pending')
    })

    it('cannot be settled when it was immediate', async () => {
      const { payment } = await pay(700, 'immediate')
      expect((await client.post(`/payments/${payment.id}:settle`)).body.code).to.equal('payment_state_conflict')
    })
  })

  describe('a refund', () => {
    it('returns a payment in parts, then the rest, and never more than was paid', async () => {
      const { payment, invoice } = await pay(700, 'immediate')
      const part = await refund(payment.id, { amount: 300, reason: 'one was broken' })
      expect(part.status).to.equal(200)
      expect(part.body).to.include({ state: 'partially_refunded', refunded_amount: 300 })
      const tooMuch = await refund(payment.id, { amount: 401, reason: 'too much' })
      expect([tooMuch.status, tooMuch.body.code]).to.deep.equal([409, 'payment_state_conflict'])
      const rest = await refund(payment.id, { reason: 'all were broken' })
      expect(rest.body).to.include({ state: 'refunded', refunded_amount: 700 })
      expect((await refund(payment.id, { reason: 'again' })).status).to.equal(409)
      expect(await invoice()).to.include({ state: 'paid', amount_paid: 700, amount_refunded: 700 })
    })

    it('is executed once per key, with the same response for every request', async () => {
      const { payment, invoice } = await pay(700, 'immediate')
      const key = newKey()
      const body = { amount: 200, reason: 'late' }
      const answers = await Promise.all(Array.from({ length: 20 }, () => refund(payment.id, body, key)))
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1)
      expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).to.have.length(1)
      await refund(payment.id, { amount: 100, reason: 'more' })
      expect((await refund(payment.id, body, key)).text).to.equal(answers[0]?.text)
      expect((await invoice()).amount_refunded).to.equal(300)
    })

    it('is refused under the key of another amount or another payment, with the members that differ', async () => {
      const one = await pay(700, 'immediate')
      const other = await pay(700, 'immediate')
      const key = newKey()
      await refund(one.payment.id, { amount: 200, reason: 'late' }, key)
      const otherAmount = await refund(one.payment.id, { amount: 300, reason: 'late' }, key)
      expect([otherAmount.status, otherAmount.body.code]).to.deep.equal([422, 'idempotency_key_reused'])
      expect(otherAmount.body.errors[0].pointer).to.equal('/amount')
      const otherPayment = await refund(other.payment.id, { amount: 200, reason: 'late' }, key)
      expect(otherPayment.body.errors.map(({ pointer }: { pointer: string }) => pointer)).to.deep.equal(['/id'])
      expect((await other.invoice()).amount_refunded).to.equal(0)
    })

    it('never returns more than was paid, also in a race with others', async () => {
      const { payment, invoice } = await pay(700, 'immediate')
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => refund(payment.id, { amount: 100, reason: 'race' })),
      )
      expect(answers.filter(({ status }) => status === 200)).to.have.length(7)
      expect(answers.filter(({ status }) => status === 409)).to.have.length(13)
      expect((await client.get(`/payments/${payment.id}`)).body.refunded_amount).to.equal(700)
      expect((await invoice()).amount_refunded).to.equal(700)
    })

    it('requires a key, and a payment that has succeeded', async () => {
      const { payment } = await pay(700, 'deferred')
      expect((await client.post(`/payments/${payment.id}:refund`, { reason: 'x' })).body.code).to.equal(
        'idempotency_key_missing',
      )
      expect((await refund(payment.id, { reason: 'x' })).body.code).to.equal('payment_state_conflict')
    })
  })
})
