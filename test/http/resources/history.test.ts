import { expect } from 'chai'
import { anOrder, approvedInvoice, type Client, clientOf, newKey } from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'

describe('history', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'history' }))
  })

  const paidInvoice = async () => {
    const { invoiceId } = await approvedInvoice(client)
    const body = { invoice_id: invoiceId, amount: 900, currency: 'USD' }
    const headers = { 'idempotency-key': newKey(), 'x-correlation-id': 'history-test-1' }
    const paid = await client.post('/payments', body, headers)
    return { invoiceId, paymentId: String(paid.body.id) }
  }

  it('has the subject, time and authority of each event, and no idempotency record', async () => {
    const { invoiceId, paymentId } = await paidInvoice()
    const { items } = (await client.get(`/invoices/${invoiceId}/history`)).body
    expect(items.map(({ type }: { type: string }) => type)).to.deep.equal([
      'InvoiceRaised',
      'InvoiceApproved',
      'PaymentApplied',
      'InvoicePaid',
    ])
    expect(items[1]).to.include({ subject: 'tester', client: 'tester', authority: 'invoice:approve', revision: 1 })
    expect(items[3]).to.include({ authority: 'payments:write', correlation_id: 'history-test-1' })
    expect(items[3].data).to.include({ amount_paid: 900, payment_id: paymentId })
    const payment = (await client.get(`/payments/${paymentId}/history`)).text
    expect(payment).to.contain('PaymentSucceeded').and.not.to.contain('key_hash')
  })

  it('is read in pages', async () => {
    const { invoiceId } = await paidInvoice()
    const types: string[] = []
    for (let path = `/invoices/${invoiceId}/history?limit=1`; ; ) {
      const { items, page } = (await client.get(path)).body
      expect(items).to.have.length(1)
      types.push(items[0].type)
      if (!page.has_more) break
      path = `/invoices/${invoiceId}/history?limit=1&cursor=${page.next_cursor}`
    }
    expect(types).to.have.length(4)
  })

  it('can be read after the order was deleted', async () => {
    const order = await client.post('/orders', anOrder())
    const path = `/orders/${order.body.id}`
    await client.request('DELETE', path, { headers: { 'if-match': order.headers.get('etag') ?? '' } })
    expect((await client.get(path)).status).to.equal(404)
    const { items } = (await client.get(`${path}/history`)).body
    expect(items.map(({ type }: { type: string }) => type)).to.deep.equal(['OrderCreated', 'OrderDeleted'])
  })

  it('is 404 for other tenants', async () => {
    const { invoiceId } = await paidInvoice()
    const otherTenant = clientOf(service.api, await service.token({ tenant: 'another' }))
    expect((await otherTenant.get(`/invoices/${invoiceId}/history`)).body.code).to.equal('resource_not_found')
  })

  it('shows the resource as it was at an earlier time', async () => {
    const { invoiceId } = await paidInvoice()
    const { items } = (await client.get(`/invoices/${invoiceId}/history`)).body
    const states = []
    for (const { at } of items) states.push((await client.get(`/invoices/${invoiceId}?as_of=${at}`)).body.state)
    expect(states).to.deep.equal(['draft', 'approved', 'paid', 'paid'])
    const before = new Date(Date.parse(items[0].at) - 1).toISOString()
    expect((await client.get(`/invoices/${invoiceId}?as_of=${before}`)).status).to.equal(404)
    expect((await client.get(`/invoices/${invoiceId}?as_of=yesterday`)).body.errors[0].pointer).to.equal('?as_of')
  })
})
