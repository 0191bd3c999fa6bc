import { expect } from 'chai'
import { approvedInvoice, type Client, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'

describe('the way from an order to a paid invoice', () => {
  let client: Client
  before(async () => {
    const service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'journey' }))
  })

  it('permits two partial payments, announces the paid invoice, and completes the order', async () => {
    const { invoiceId, orderId } = await approvedInvoice(client, 900)
    const pay = (amount: number) =>
      client.post('/payments', { invoice_id: invoiceId, amount, currency: 'USD' }, { 'idempotency-key': newKey() })
    expect((await pay(400)).status).to.equal(201)
    expect((await client.get(`/invoices/${invoiceId}`)).body).to.include({ state: 'partially_paid', amount_paid: 400 })
    expect((await pay(500)).status).to.equal(201)
    expect((await client.get(`/invoices/${invoiceId}`)).body).to.include({ state: 'paid', amount_paid: 900 })
    expect((await pay(1)).body).to.include({ code: 'payment_exceeds_due' })
    const paid = await eventually(async () => {
      const events = await client.get(`/events?subject=${invoiceId}&type=invoice.paid`)
      return events.body.items[0]
    })
    expect(paid.data).to.include({ invoice_id: invoiceId, order_id: orderId, amount_paid: 900, exponent: 2 })
    await eventually(async () => (await client.get(`/orders/${orderId}`)).body.state === 'completed')
  })
})
