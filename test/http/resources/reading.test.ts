import { expect } from 'chai'
import { Client as PostgresClient } from 'pg'
import { breadth } from '../../support/breadth.ts'
import { type Answer, anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { inParallel, pay } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

const TABLES = ['orders_v1', 'invoices_v1', 'payments_v1', 'facts_v1']
const CLIENTS = 16
const CASES = breadth(200, 2_000)

describe('written resources can be read', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'reading' }))
  })

  const locationOf = ({ headers }: Answer): string => headers.get('location') ?? 'no location'

  /** Creates orders and payments alternately, and reads each at once from the Location of the response. */
  const writeAndRead = async (times: number, invoiceIds: readonly string[]): Promise<string[]> => {
    const turns = Array.from({ length: times }, (_, turn) => turn)
    return inParallel(CLIENTS, turns, async turn => {
      const invoiceId = invoiceIds[turn % invoiceIds.length] ?? ''
      const written = await (turn % 2 === 0 ? client.post('/orders', anOrder()) : pay(client, aPayment(invoiceId)))
      expect(written.status, written.text).to.equal(201)
      const read = await client.get(locationOf(written))
      expect(read.status, read.text).to.equal(200)
      expect(read.headers.get('etag')).to.equal(written.headers.get('etag'))
      expect(read.text).to.equal(written.text)
      return written.body.id
    })
  }
  const invoicesFor = async (payments: number): Promise<string[]> => {
    const invoices = await inParallel(4, Array.from({ length: 20 }), () => approvedInvoice(client, payments * 100))
    return invoices.map(({ invoiceId }) => invoiceId)
  }

  it(`at once, in ${CASES} cases, with their ETag`, async () => {
    await writeAndRead(CASES, await invoicesFor(CASES / 2))
  })

  it('while every read model is stopped, and the lists catch up afterwards', async () => {
    const invoiceIds = await invoicesFor(150)
    const second = new PostgresClient({ connectionString: service.addresses.postgres })
    await second.connect()
    let written: string[]
    try {
      await second.query(`begin; lock table ${TABLES.join(', ')} in access exclusive mode`)
      written = await writeAndRead(300, invoiceIds)
      const moved = await client.get(`/invoices/${invoiceIds[1]}`)
      expect(moved.body.amount_paid).to.be.greaterThan(0)
      const list = await client.get('/orders')
      expect(list.body).to.include({ status: 503, code: 'dependency_unavailable' })
      await second.query('rollback')
    } finally {
      await second.end()
    }
    const orders = new Set(written.filter(id => id.startsWith('ord_')))
    await eventually(async () => {
      for (const { id } of (await scan(client, '/orders?limit=100', 3)).flat()) orders.delete(id)
      return orders.size === 0
    })
    for (const invoiceId of invoiceIds.slice(0, 3)) {
      const { body } = await client.get(`/invoices/${invoiceId}`)
      await eventually(async () => {
        const { items } = (await client.get(`/invoices?order_id=${body.order_id}`)).body
        return items.length === 1 && items[0].version === body.version && items[0].amount_paid === body.amount_paid
      })
    }
  })

  describe('and are 304 for a matching If-None-Match', () => {
    let path = ''
    let etag = ''
    before(async () => {
      const order = await client.post('/orders', anOrder())
      path = locationOf(order)
      etag = order.headers.get('etag') ?? ''
    })
    const ask = (ifNoneMatch: string) => client.get(path, { 'if-none-match': ifNoneMatch })

    it('with their ETag, weak or strong, alone or in a list, or the star', async () => {
      for (const known of [etag, `W/${etag}`, `"other", ${etag}`, `"a" ,W/"b",W/${etag} , "c"`, '*', ' * ']) {
        const answer = await ask(known)
        expect(answer.status, known).to.equal(304)
        expect(answer.text, known).to.equal('')
        expect(answer.headers.get('etag')).to.equal(etag)
        expect(answer.headers.get('cache-control')).to.equal('private, no-cache')
        expect(answer.headers.get('vary')).to.match(/authorization/i)
      }
    })

    it('but not for any other tag', async () => {
      const text = etag.slice(1, -1)
      for (const other of ['"x"', `"${text}x"`, `"x${text}", W/"${text.slice(1)}"`, `W/"${text.toUpperCase()}~"`])
        expect((await ask(other)).status, other).to.equal(200)
    })

    it('which is refused when it is malformed', async () => {
      for (const malformed of ['unquoted', '"open', 'W/', 'w/"x"', '"a" "b"', '*, "a"', ',', '""x'])
        expect((await ask(malformed)).body, malformed).to.include({ status: 400, code: 'precondition_invalid' })
    })
  })
})

type Item = { readonly id: string }

/** The pages of a list, at most `pagesMax`. */
const scan = async (client: Client, path: string, pagesMax = Number.POSITIVE_INFINITY): Promise<Item[][]> => {
  const pages: Item[][] = []
  for (let next: string | null = path; next !== null && pages.length < pagesMax; ) {
    const { status, body, headers, text }: Answer = await client.get(next)
    expect(status, text).to.equal(200)
    pages.push(body.items)
    expect(body.page.has_more).to.equal(body.page.next_cursor !== null)
    const link: string | undefined = /^<(.+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
    expect(link === undefined).to.equal(body.page.next_cursor === null)
    next = link ?? null
  }
  return pages
}
