import { expect } from 'chai'
import { type Answer, anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { pay, wordsOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { send } from '../../support/rawHttp.ts'

const MISSING = '00000000000000000000000000'

const etagOf = ({ headers }: Answer): string => headers.get('etag') ?? ''

describe('If-Match', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'conditional' }))
  })

  const draft = async (): Promise<{ id: string; orderId: string; etag: string }> => {
    const order = await client.post('/orders', anOrder())
    const invoice = await client.post('/invoices', { order_id: order.body.id })
    return { id: invoice.body.id, orderId: order.body.id, etag: etagOf(invoice) }
  }
  const approve = (id: string, ifMatch?: string, by = client): Promise<Answer> =>
    by.post(`/invoices/${id}:approve`, {}, ifMatch === undefined ? {} : { 'if-match': ifMatch })

  it('accepts the current ETag, alone or in a list, and the star', async () => {
    for (const listOf of [(etag: string) => etag, (etag: string) => `"other", W/"weak" ,${etag}`, () => '*']) {
      const { id, etag } = await draft()
      const approved = await approve(id, listOf(etag))
      expect(approved.status, approved.text).to.equal(200)
      expect(approved.body).to.include({ state: 'approved', approved_by: 'tester', version: 1 })
      expect(etagOf(approved)).not.to.equal(etag)
      expect(etagOf(await client.get(`/invoices/${id}`))).to.equal(etagOf(approved))
    }
  })

  it('fails for a weak tag and for a stale one, with the current ETag', async () => {
    const { id, etag } = await draft()
    for (const other of [`W/${etag}`, '"0"']) {
      const failed = await approve(id, other)
      expect(failed.body, other).to.include({ status: 412, code: 'precondition_failed' })
      expect(etagOf(failed)).to.equal(etag)
    }
    const approved = await approve(id, etag)
    const stale = await approve(id, etag)
    expect(stale.body).to.include({ status: 412, code: 'precondition_failed' })
    expect(etagOf(stale)).to.equal(etagOf(approved))
    const again = await approve(id, etagOf(stale))
    expect(again.body).to.include({ status: 409, code: 'invoice_state_conflict' })
  })

  it('is not checked for resources of another tenant, which are 404 like missing ones', async () => {
    const { id, orderId, etag } = await draft()
    const otherTenant = clientOf(service.api, await service.token({ tenant: 'conditional-2' }))
    const missing = await approve(`inv_${MISSING}`, etag, otherTenant)
    expect(missing.body).to.include({ status: 404, code: 'resource_not_found' })
    for (const theirs of [
      await approve(id, etag, otherTenant),
      await approve(id, '"stale"', otherTenant),
      await approve(id, '*', otherTenant),
      await otherTenant.post(`/invoices/${id}:void`, { reason: 'mine' }, { 'if-match': etag }),
      await otherTenant.post(`/orders/${orderId}:cancel`, {}, { 'if-match': '*' }),
      await otherTenant.request('DELETE', `/orders/${orderId}`, { headers: { 'if-match': '*' } }),
      await otherTenant.get(`/invoices/${id}`),
      await otherTenant.get(`/orders/${orderId}`),
      await otherTenant.get(`/orders/${orderId}`, { 'if-none-match': '*' }),
      await otherTenant.post('/invoices', { order_id: orderId }),
    ]) {
      expect(wordsOf(theirs)).to.deep.equal(wordsOf(missing))
      expect(theirs.headers.has('etag')).to.equal(false)
    }
    expect((await client.get(`/invoices/${id}`)).body.state).to.equal('draft')
  })
})

describe('If-None-Match', () => {
  it('applies also with Cache-Control: no-cache', async () => {
    const service = await sharedService()
    const token = await service.token({ tenant: 'conditional' })
    const client = clientOf(service.api, token)
    const order = await client.post('/orders', anOrder())
    const path = order.headers.get('location') ?? ''
    // fetch adds Cache-Control by itself to conditional requests.
    expect((await client.get(path, { 'if-none-match': etagOf(order) })).status).to.equal(304)
    for (const directive of ['no-cache', 'max-age=0', 'no-store'])
      for (const etag of [etagOf(order), `W/${etagOf(order)}`, `"x", ${etagOf(order)}`, '*', '"x"']) {
        const headers = {
          Authorization: `Bearer ${token}`,
          'If-None-Match': etag,
          'Cache-Control': directive,
          Pragma: 'no-cache',
        }
        const answer = await send(service.api, { method: 'GET', path, headers: Object.entries(headers) })
        expect([answer.status, answer.text], `${directive} ${etag}`).to.deep.equal(
          etag === '"x"' ? [200, order.text] : [304, ''],
        )
        expect(etagOf(answer)).to.equal(etagOf(order))
        expect(answer.headers.get('cache-control')).to.equal('private, no-cache')
      }
  })
})

describe('the states of orders and invoices', () => {
  let client: Client
  before(async () => {
    const service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'states' }))
  })

  const act = (path: string, body: object = {}): Promise<Answer> => client.post(path, body, { 'if-match': '*' })
  const remove = (id: string): Promise<Answer> =>
    client.request('DELETE', `/orders/${id}`, { headers: { 'if-match': '*' } })
  const anOrderId = async (): Promise<string> => (await client.post('/orders', anOrder())).body.id

  it('an open order is cancelled once', async () => {
    const id = await anOrderId()
    expect((await act(`/orders/${id}:cancel`, { reason: 'too late' })).body).to.include({ state: 'cancelled' })
    expect((await act(`/orders/${id}:cancel`)).body).to.include({ status: 409, code: 'order_state_conflict' })
    const invoice = await client.post('/invoices', { order_id: id })
    expect(invoice.body).to.include({ status: 409, code: 'order_state_conflict' })
  })

  it('an order with a live invoice is neither cancelled, nor deleted, nor invoiced again', async () => {
    const { orderId, invoiceId } = await approvedInvoice(client)
    for (const answer of [
      await act(`/orders/${orderId}:cancel`),
      await remove(orderId),
      await client.post('/invoices', { order_id: orderId }),
    ]) {
      expect(answer.body).to.include({ status: 409, code: 'order_has_invoices' })
      expect(answer.body.detail).to.include(invoiceId)
    }
  })

  it('a voided invoice opens its order again', async () => {
    const { orderId, invoiceId } = await approvedInvoice(client)
    expect((await act(`/invoices/${invoiceId}:void`, {})).body).to.include({ status: 400, code: 'validation_failed' })
    const voided = await act(`/invoices/${invoiceId}:void`, { reason: 'a mistake' })
    expect(voided.body).to.include({ state: 'voided' })
    expect((await act(`/invoices/${invoiceId}:void`, { reason: 'again' })).body).to.include({
      status: 409,
      code: 'invoice_state_conflict',
    })
    expect((await act(`/invoices/${invoiceId}:approve`)).body).to.include({ code: 'invoice_state_conflict' })
    await eventually(async () => (await client.get(`/orders/${orderId}`)).body.state === 'open')
    expect((await client.post('/invoices', { order_id: orderId })).status).to.equal(201)
  })

  it('a partially paid invoice is not voided', async () => {
    const { invoiceId } = await approvedInvoice(client)
    expect((await pay(client, aPayment(invoiceId))).status).to.equal(201)
    const refused = await act(`/invoices/${invoiceId}:void`, { reason: 'no' })
    expect(refused.body).to.include({ status: 409, code: 'invoice_state_conflict' })
    expect((await client.get(`/invoices/${invoiceId}`)).body.state).to.equal('partially_paid')
  })

  it('a deleted order is 404 for every caller', async () => {
    const id = await anOrderId()
    const gone = await remove(id)
    expect([gone.status, gone.text]).to.deep.equal([204, ''])
    for (const answer of [
      await client.get(`/orders/${id}`),
      await remove(id),
      await act(`/orders/${id}:cancel`),
      await client.post('/invoices', { order_id: id }),
    ])
      expect(answer.body).to.include({ status: 404, code: 'resource_not_found' })
  })
})
