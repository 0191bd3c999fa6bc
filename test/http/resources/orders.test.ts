import { expect } from 'chai'
import { anOrder, type Answer, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'

const MERGE_PATCH = 'application/merge-patch+json'

describe('a PATCH of an order', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'orders' }))
  })

  const created = async (): Promise<{ path: string; etag: string; body: Answer['body'] }> => {
    const order = { ...anOrder(), customer_reference: 'PO 1', description: 'tea', metadata: { a: '1', b: '2' } }
    const answer = await client.post('/orders', order)
    return { path: `/orders/${answer.body.id}`, etag: answer.headers.get('etag') ?? '', body: answer.body }
  }
  const patch = (path: string, body: unknown, headers: Readonly<Record<string, string>>) =>
    client.request('PATCH', path, { body, headers: { 'content-type': MERGE_PATCH, ...headers } })

  it('changes the named members and no other', async () => {
    const { path, etag, body } = await created()
    const changed = await patch(path, { description: 'green tea', metadata: { a: null, c: '3' } }, { 'if-match': etag })
    expect(changed.status).to.equal(200)
    const { version, updated_at, ...rest } = changed.body
    const { version: before, updated_at: _, ...unchanged } = body
    expect(version).to.equal(before + 1)
    expect(updated_at).to.be.a('string')
    expect(rest).to.deep.equal({ ...unchanged, description: 'green tea', metadata: { b: '2', c: '3' } })
    expect((await client.get(path)).text).to.equal(changed.text)
  })

  it('removes members that are null', async () => {
    const { path, etag } = await created()
    const removed = await patch(path, { customer_reference: null, metadata: null }, { 'if-match': etag })
    expect(removed.body).to.deep.include({ customer_reference: null, metadata: {} })
  })

  it('replaces the lines of an open order only, and computes the total again', async () => {
    const { path, etag } = await created()
    const lines = [{ sku: 'cup', quantity: 3, unit_amount: 200 }]
    expect((await patch(path, { lines }, { 'if-match': etag })).body.total_amount).to.equal(600)
    const { orderId } = await approvedInvoice(client)
    const invoiced = await client.get(`/orders/${orderId}`)
    const ifMatch = { 'if-match': invoiced.headers.get('etag') ?? '' }
    const late = await patch(`/orders/${orderId}`, { lines }, ifMatch)
    expect([late.status, late.body.code]).to.deep.equal([409, 'order_state_conflict'])
    expect((await patch(`/orders/${orderId}`, { description: 'late' }, ifMatch)).status).to.equal(200)
  })

  it('changes its own members of the metadata alone, beside others at the same time', async () => {
    const { path } = await created()
    const names = Array.from({ length: 8 }, (_, index) => `name-${index}`)
    const answers = await Promise.all(
      names.map(name => patch(path, { metadata: { [name]: name } }, { 'if-match': '*' })),
    )
    expect(answers.map(({ status }) => status)).to.deep.equal(names.map(() => 200))
    const changed = Object.fromEntries(names.map(name => [name, name]))
    expect((await client.get(path)).body.metadata).to.deep.equal({ a: '1', b: '2', ...changed })
  })

  it('leaves at most 50 members of the metadata, beside others at the same time', async () => {
    const fortyNine = Object.fromEntries(Array.from({ length: 49 }, (_, index) => [`key-${index}`, 'x']))
    const order = await client.post('/orders', { ...anOrder(), metadata: fortyNine })
    const path = `/orders/${order.body.id}`
    const answers = await Promise.all(
      ['one', 'two'].map(name => patch(path, { metadata: { [name]: 'more' } }, { 'if-match': '*' })),
    )
    expect(answers.map(({ status }) => status)).to.have.members([200, 400])
    const refused = answers.find(({ status }) => status === 400)
    expect(refused?.body).to.deep.include({
      code: 'validation_failed',
      errors: [{ pointer: '/metadata', code: 'custom', detail: 'Must have at most 50 keys.' }],
    })
    expect(Object.keys((await client.get(path)).body.metadata)).to.have.length(50)
  })

  it('keeps the version when it changes nothing', async () => {
    const { path, etag, body } = await created()
    const same = await patch(path, { description: 'tea' }, { 'if-match': etag })
    expect([same.status, same.body]).to.deep.equal([200, body])
  })
})
