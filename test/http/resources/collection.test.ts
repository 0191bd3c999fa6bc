import { expect } from 'chai'
import { anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { inParallel, newKey, pay } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

const ROWS = 60
const WRITTEN_MIN = 3

describe('lists', () => {
  let service: TestService
  let client: Client
  let ids: string[] = []
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'lists' }))
    const orders = await inParallel(12, Array.from({ length: ROWS }), () => client.post('/orders', anOrder()))
    ids = orders.map(({ body }) => body.id)
    const last = orders.map(({ headers }) => BigInt(headers.get('ledger-position') ?? 0))
    await untilCurrent(last.reduce((a, b) => (a > b ? a : b)))
  })

  /** Lists are eventually consistent, and name the position up to which they are current. */
  const untilCurrent = (position: bigint) =>
    eventually(async () => BigInt((await client.get('/orders?limit=1')).body.page.as_of_position) >= position)

  it('return every row that existed all the time exactly once, beside concurrent writes', async () => {
    let writing = true
    let written = 0
    const writer = async (): Promise<void> => {
      while (writing) {
        await client.post('/orders', anOrder())
        const path = `/orders/${ids[written++ % ROWS]}:cancel`
        const cancelled = await client.post(path, {}, { 'if-match': '*' })
        expect(cancelled.status).to.be.oneOf([200, 409])
      }
    }
    const writers = [writer(), writer()]
    // Scans continue until some writes happened during them, however slow the writers are.
    for (let scans = 0; scans < 3 || written <= WRITTEN_MIN; scans++) {
      const actual: string[] = []
      const times: string[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { body } = await client.get(`/orders?limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`)
        expect(body.items.length).to.be.at.most(7)
        for (const { id, created_at } of body.items) {
          actual.push(id)
          times.push(created_at)
        }
        cursor = body.page.next_cursor
      }
      expect(new Set(actual).size, 'a row was listed twice').to.equal(actual.length)
      for (const id of ids) expect(actual).to.include(id)
      expect(times, 'newest first').to.deep.equal(times.toSorted().toReversed())
    }
    writing = false
    await Promise.all(writers)
  })

  it('have 25 rows by default, and limits from 1 to 100', async () => {
    expect((await client.get('/orders')).body.items).to.have.lengthOf(25)
    expect((await client.get('/orders?limit=1')).body.items).to.have.lengthOf(1)
    expect((await client.get('/orders?limit=100')).body.items.length).to.be.at.least(ROWS)
    for (const limit of ['0', '101', '-1', '1.5', '1e1', 'all', '', '+5', '99999999999']) {
      const { body } = await client.get(`/orders?limit=${encodeURIComponent(limit)}`)
      expect(body, limit).to.include({ status: 400, code: 'validation_failed' })
      expect(body.errors[0].pointer).to.equal('?limit')
    }
  })

  it('refuse an unknown or repeated parameter', async () => {
    for (const query of [
      'page=2',
      'limit=5&limit=6',
      'offset=0',
      'LIMIT=5',
      '__proto__=x',
      'state[]=open',
      'tenant=x',
    ]) {
      const { body } = await client.get(`/orders?${query}`)
      expect(body, query).to.include({ status: 400, code: 'unknown_parameter' })
    }
    const two = await client.get('/orders?a=1&b=2')
    expect(two.body.errors.map(({ pointer }: { pointer: string }) => pointer)).to.deep.equal(['?a', '?b'])
    const notAList = await client.get(`/orders/${ids[0]}?expand=all`)
    expect(notAList.body).to.include({ status: 400, code: 'unknown_parameter' })
  })

  it('are filtered by the members of their rows', async () => {
    const reference = `filtered ${newKey()}`
    const { orderId, invoiceId } = await approvedInvoice(client, 700)
    const paid = await pay(client, aPayment(invoiceId, { reference }))
    const other = await pay(client, aPayment(invoiceId))
    await untilCurrent(BigInt(paid.headers.get('ledger-position') ?? 0))
    const succeeded = `/payments?invoice_id=${invoiceId}&state=succeeded`
    await eventually(async () => (await client.get(succeeded)).body.items.length === 2)
    const listed = async (path: string): Promise<string[]> =>
      (await client.get(path)).body.items.map(({ id }: { id: string }) => id)
    expect(await listed(`/payments?reference=${encodeURIComponent(reference)}`)).to.deep.equal([paid.body.id])
    const both = [paid.body.id, other.body.id]
    expect(await listed(`/payments?order_id=${orderId}`)).to.have.members(both)
    expect(await listed(`/payments?order_id=${orderId}&state=succeeded&currency=USD`)).to.have.members(both)
    for (const none of ['state=failed', 'currency=EUR', 'reference=none', 'created_before=2020-01-01T00:00:00Z'])
      expect(await listed(`/payments?order_id=${orderId}&${none}`), none).to.deep.equal([])
    expect(await listed(`/payments?order_id=${orderId}&created_after=2020-01-01T00:00:00Z`)).to.have.members(both)
    expect(await listed(`/payments?order_id=${orderId}&created_after=${paid.body.created_at}`)).not.to.include(
      paid.body.id,
    )
    expect(await listed(`/invoices?order_id=${orderId}&state=partially_paid`)).to.deep.equal([invoiceId])
    expect(await listed(`/orders?state=invoiced`)).to.include(orderId)
    expect(await listed(`/orders?state=open`)).not.to.include(orderId)
  })

  it('refuse a filter that no row can match, before the database does', async () => {
    for (const path of [
      '/orders?state=OPEN',
      '/orders?state=deleted',
      '/orders?currency=XAU',
      '/orders?created_after=yesterday',
      '/orders?created_after=2026-02-30T00:00:00Z',
      '/orders?created_after=0000-01-01T00:00:00Z',
      '/orders?created_before=2026-01-01',
      '/payments?reference=%00',
      `/payments?reference=${'x'.repeat(501)}`,
      '/payments?reference=',
      '/payments?invoice_id=ord_00000000000000000000000000',
      '/payments?order_id=%27;--',
      '/events?subject=a%00b',
      '/events?type=invoice.exploded',
      '/events?from_position=-1',
      '/events?from_position=9999999999999999999',
      '/events?from_time=0000-01-01T00:00:00Z',
    ])
      expect((await client.get(path)).body, path).to.include({ status: 400, code: 'validation_failed' })
  })

  it('contain nothing of another tenant, and nothing deleted', async () => {
    const otherTenant = clientOf(service.api, await service.token({ tenant: 'lists-3' }))
    expect((await otherTenant.get('/orders')).body.items).to.deep.equal([])
    const order = await client.post('/orders', anOrder())
    const newest = async () => (await client.get('/orders?limit=1')).body.items[0]
    await eventually(async () => (await newest()).id === order.body.id)
    const gone = await client.request('DELETE', `/orders/${order.body.id}`, { headers: { 'if-match': '*' } })
    expect(gone.status).to.equal(204)
    await eventually(async () => (await newest()).id !== order.body.id)
    expect((await client.get(`/orders/${order.body.id}`)).body).to.include({ status: 404, code: 'resource_not_found' })
  })
})
