import { expect } from 'chai'
import { anOrder, type Answer, approvedInvoice, type Client, clientOf } from '../support/client.ts'
import { sharedService, type TestService } from '../support/service.ts'

const MERGE_PATCH = 'application/merge-patch+json'

describe('orders', () => {
  let service: TestService
  let client: Client
  before(async function () {
    this.timeout(60_000)
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

  it('removes what is null, and keeps its lines', async () => {
    const { path, etag } = await created()
    const removed = await patch(path, { customer_reference: null, metadata: null }, { 'if-match': etag })
    expect(removed.body).to.deep.include({ customer_reference: null, metadata: {} })
    const withoutLines = await patch(path, { lines: null }, { 'if-match': removed.headers.get('etag') ?? '' })
    expect([withoutLines.status, withoutLines.body.errors[0].pointer]).to.deep.equal([400, '/lines'])
  })

  it('takes new lines while it is open, and adds them up anew', async () => {
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

  it('has the same version after a patch that changes nothing', async () => {
    const { path, etag, body } = await created()
    const same = await patch(path, { description: 'tea' }, { 'if-match': etag })
    expect([same.status, same.body]).to.deep.equal([200, body])
  })

  for (const [member, value] of Object.entries({
    state: 'completed',
    id: 'ord_0123456789ABCDEFGHJKMNPQRS',
    total_amount: 1,
    currency: 'EUR',
    tenant_id: 'other',
    version: 7,
    created_by: 'me',
    role: 'admin',
  }))
    it(`refuses a patch of ${member}`, async () => {
      const { path, etag } = await created()
      const refused = await patch(path, { [member]: value }, { 'if-match': etag })
      expect([refused.status, refused.body.errors[0].pointer]).to.deep.equal([400, `/${member}`])
      expect((await client.get(path)).headers.get('etag')).to.equal(etag)
    })

  it('refuses what is no patch of an order, and annotations beyond their limits after merging', async () => {
    const { path, etag } = await created()
    const ifMatch = { 'if-match': etag }
    for (const body of [[], 'x', 1, null, true]) expect((await patch(path, body, ifMatch)).status).to.equal(400)
    const many = Object.fromEntries(Array.from({ length: 49 }, (_, index) => [`k${index}`, 'v']))
    const tooMany = await patch(path, { metadata: many }, ifMatch)
    expect([tooMany.status, tooMany.body.errors[0].pointer]).to.deep.equal([400, '/metadata'])
  })

  it('says which media type a patch has', async () => {
    const { path, etag } = await created()
    const json = await client.request('PATCH', path, { body: {}, headers: { 'if-match': etag } })
    expect([json.status, json.headers.get('accept-patch')]).to.deep.equal([415, MERGE_PATCH])
  })

  it('takes one of 100 parallel patches with one ETag', async () => {
    const { path, etag } = await created()
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => patch(path, { description: `v${index}` }, { 'if-match': etag })),
    )
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1)
    expect(answers.filter(({ status }) => status === 412)).to.have.length(99)
    expect((await client.get(path)).body.version).to.equal(1)
  })

  it('needs If-Match', async () => {
    const { path } = await created()
    expect((await patch(path, {}, {})).body.code).to.equal('precondition_required')
  })
})
