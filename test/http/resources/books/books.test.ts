import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../../src/ports.ts'
import { type Client, clientOf, newKey } from '../../../support/client.ts'
import { sharedService, type TestService } from '../../../support/service.ts'

type Item = Readonly<Record<string, unknown>>

describe('the books over HTTP', () => {
  let service: TestService
  let store: EventStore
  let tenants = 0

  before(async () => {
    service = await sharedService()
    store = openEventStore({ connectionString: service.addresses.event_store })
  })
  after(() => store.close())

  /** A tenant of its own for each case, so that the books have its entries alone. */
  const newTenant = async (): Promise<{ client: Client; settler: Client }> => {
    tenants += 1
    const tenant = `books-${tenants}`
    return {
      client: clientOf(service.api, await service.token({ tenant })),
      settler: clientOf(service.api, await service.token({ tenant, subject: 'bank' })),
    }
  }
  const current = async (): Promise<Record<string, string>> => ({
    'if-min-position': String(await store.head()),
    prefer: 'wait=10',
  })
  const invoiced = async (client: Client, amount: number, customer: string | null, currency = 'USD') => {
    const lines = [{ sku: 'tea', quantity: 1, unit_amount: amount }]
    const order = await client.post('/orders', {
      currency,
      lines,
      ...(customer ? { customer_reference: customer } : {}),
    })
    const invoice = await client.post('/invoices', { order_id: order.body.id })
    const path = `/invoices/${invoice.body.id}`
    const approved = await client.post(`${path}:approve`, {}, { 'if-match': invoice.headers.get('etag') ?? '' })
    expect(approved.status, approved.text).to.equal(200)
    return {
      orderId: String(order.body.id),
      invoiceId: String(invoice.body.id),
      etag: approved.headers.get('etag') ?? '',
    }
  }
  const paid = async (client: Client, invoice_id: string, amount: number, more: object = {}): Promise<string> => {
    const body = { invoice_id, amount, currency: 'USD', ...more }
    const answer = await client.post('/payments', body, { 'idempotency-key': newKey() })
    expect(answer.status, answer.text).to.equal(201)
    return String(answer.body.id)
  }
  const itemsOf = async (client: Client, path: string): Promise<readonly Item[]> => {
    const { status, body, text } = await client.get(path, await current())
    expect(status, text).to.equal(200)
    return body.items as readonly Item[]
  }
  /** The account of a customer, whose code has a token. */
  const receivablesOf = async (client: Client, customer: string, currency = 'USD'): Promise<string> => {
    const items = await itemsOf(client, `/accounts?customer_reference=${encodeURIComponent(customer)}`)
    return String(items.find(item => item['currency'] === currency)?.['code'])
  }
  const balances = (posted: number, pending: number, available: number) => ({ exponent: 2, posted, pending, available })

  it('have an account of each customer and a balanced entry of each step of a payment', async () => {
    const { client, settler } = await newTenant()
    const { orderId, invoiceId } = await invoiced(client, 1_000, 'CUST 7')
    const first = await paid(client, invoiceId, 300)
    const deferred = await paid(client, invoiceId, 500, { settlement: 'deferred' })
    const code = await receivablesOf(client, 'CUST 7')
    expect(code).to.match(/^receivables\.USD\.prs_\w{26}$/)
    const account = `/accounts/${code}`
    const pending = await client.get(account, await current())
    expect(pending.body).to.deep.equal({
      code,
      name: 'Receivables',
      type: 'asset',
      currency: 'USD',
      exponent: 2,
      customer_reference: 'CUST 7',
      normal_side: 'debit',
      balances: balances(700, -500, 200),
    })
    expect((await client.get('/accounts/cash-in-clearing.USD', await current())).body.balances).to.deep.equal(
      balances(0, 500, 0),
    )
    const settled = await settler.post(`/payments/${deferred}:settle`, {})
    expect(settled.status, settled.text).to.equal(200)
    const refund = { amount: 100, reason: 'broken' }
    expect((await client.post(`/payments/${first}:refund`, refund, { 'idempotency-key': newKey() })).status).to.equal(
      200,
    )
    const entries = await itemsOf(client, '/journal-entries')
    expect(entries.map(({ kind }) => kind)).to.deep.equal([
      'payment_refunded',
      'payment_settled',
      'payment_pending',
      'payment_received',
      'invoice_approved',
    ])
    for (const entry of entries) {
      const sums = { debit: 0, credit: 0 }
      for (const { direction, amount } of entry['postings'] as { direction: 'debit' | 'credit'; amount: number }[])
        sums[direction] += amount
      expect(sums.debit).to.equal(sums.credit)
      expect(entry).to.include({ order_id: orderId, invoice_id: invoiceId, reverses: null, reversed_by: null })
    }
    expect((await itemsOf(client, `/journal-entries?payment_id=${first}`)).length).to.equal(2)
    expect((await itemsOf(client, `/journal-entries?order_id=${orderId}&account=cash.USD`)).length).to.equal(2)
    expect((await itemsOf(client, `${account}/entries`)).map(({ kind }) => kind)).to.deep.equal([
      'payment_pending',
      'payment_received',
      'invoice_approved',
    ])
    const rows = await itemsOf(client, '/trial-balance')
    expect(rows.map(({ account: listed, debits, credits }) => [listed, debits, credits])).to.deep.equal([
      ['cash-in-clearing.USD', 500, 500],
      ['cash.USD', 800, 0],
      [code, 1_000, 800],
      ['refunds-payable.USD', 0, 100],
      ['revenue.USD', 100, 1_000],
    ])
  })

  it('keep the currencies apart', async () => {
    const { client } = await newTenant()
    await invoiced(client, 1_000, 'A')
    await invoiced(client, 700, 'A', 'JPY')
    const rows = await itemsOf(client, '/trial-balance?currency=JPY')
    expect(rows.map(({ account, exponent }) => [account, exponent])).to.deep.equal([
      [await receivablesOf(client, 'A', 'JPY'), 0],
      ['revenue.JPY', 0],
    ])
    expect(rows.map(({ customer_reference }) => customer_reference)).to.deep.equal(['A', null])
    const { totals } = (await client.get('/trial-balance')).body
    expect(totals.map(({ currency, debits }: Item) => [currency, debits])).to.deep.equal([
      ['JPY', 700],
      ['USD', 1_000],
    ])
    expect((await itemsOf(client, '/accounts?customer_reference=A')).length).to.equal(2)
  })

  it('reverse a void and a failure, linked both ways', async () => {
    const { client, settler } = await newTenant()
    const { invoiceId, etag } = await invoiced(client, 1_000, null)
    const deferred = await paid(client, invoiceId, 500, { settlement: 'deferred' })
    expect((await settler.post(`/payments/${deferred}:fail`, { code: 'bounced' })).status).to.equal(200)
    const invoice = await client.get(`/invoices/${invoiceId}`)
    expect(invoice.headers.get('etag')).not.to.equal(etag)
    const ifMatch = { 'if-match': invoice.headers.get('etag') ?? '' }
    expect((await client.post(`/invoices/${invoiceId}:void`, { reason: 'wrong' }, ifMatch)).status).to.equal(200)
    const [voided, failed, pending, approved] = await itemsOf(client, '/journal-entries')
    expect([voided?.['reverses'], failed?.['reverses']]).to.deep.equal([approved?.['id'], pending?.['id']])
    expect([approved?.['reversed_by'], pending?.['reversed_by']]).to.deep.equal([voided?.['id'], failed?.['id']])
    for (const { debits, credits } of await itemsOf(client, '/trial-balance')) expect(debits).to.equal(credits)
    const one = await client.get(`/journal-entries/${String(approved?.['id'])}`, await current())
    expect(one.body).to.deep.equal(approved)
    const before = String(pending?.['position'])
    const then = await client.get(`/journal-entries/${String(approved?.['id'])}?as_of_position=${before}`)
    expect(then.body).to.deep.equal({ ...approved, reversed_by: null })
  })

  it('show each moment of the past by time and by position', async () => {
    const { client } = await newTenant()
    const { invoiceId } = await invoiced(client, 1_000, 'A')
    await paid(client, invoiceId, 300)
    await paid(client, invoiceId, 200)
    const [last, middle, first] = await itemsOf(client, '/journal-entries')
    const account = `/accounts/${await receivablesOf(client, 'A')}`
    const available = async (query: string): Promise<unknown> =>
      ((await client.get(`${account}${query}`)).body.balances as Item | undefined)?.['available']
    expect(await available(`?as_of_position=${String(last?.['position'])}`)).to.equal(500)
    expect(await available(`?as_of_position=${String(middle?.['position'])}`)).to.equal(700)
    expect(await available(`?as_of_position=${String(first?.['position'])}`)).to.equal(1_000)
    expect((await client.get(`${account}?as_of=2020-01-01T00:00:00Z`)).status).to.equal(404)
    expect(await available(`?as_of=${String(last?.['at'])}`)).to.equal(500)
    expect(await available('?as_of=2999-01-01T00:00:00Z')).to.equal(500)
    const both = await client.get('/accounts?as_of=2020-01-01T00:00:00Z&as_of_position=1')
    expect([both.status, both.body.code]).to.deep.equal([400, 'validation_failed'])
    const beyond = await client.get('/accounts?as_of_position=9000000000000000000')
    expect([beyond.status, beyond.body.code]).to.deep.equal([503, 'projection_behind'])
  })

  it('answer every page of a list as of the position of the first', async () => {
    const { client } = await newTenant()
    for (const customer of ['A', 'B', 'C']) await invoiced(client, 1_000, customer)
    const first = await client.get('/trial-balance?limit=2', await current())
    await invoiced(client, 500, 'A')
    await invoiced(client, 500, 'D')
    await itemsOf(client, '/accounts')
    const totals = [{ currency: 'USD', exponent: 2, debits: 3_000, credits: 3_000 }]
    expect(first.body.totals).to.deep.equal(totals)
    expect((first.body.items as Item[])[0]).to.include({ account_name: 'Receivables' })
    const rows = [...(first.body.items as Item[])]
    for (let link = first.headers.get('link'); link !== null; ) {
      const next = await client.get(/<(.*)>/.exec(link)?.[1] ?? '')
      expect(next.status, next.text).to.equal(200)
      expect((next.body.page as Item)['as_of_position']).to.equal((first.body.page as Item)['as_of_position'])
      expect(next.body.totals, 'of all accounts, as of the first page').to.deep.equal(totals)
      rows.push(...(next.body.items as Item[]))
      link = next.headers.get('link')
    }
    const customers = await Promise.all(['A', 'B', 'C'].map(customer => receivablesOf(client, customer)))
    expect(rows.map(({ account, debits, credits }) => [account, debits, credits])).to.deep.equal([
      ...customers.toSorted().map(code => [code, 1_000, 0]),
      ['revenue.USD', 0, 3_000],
    ])
  })

  it('answer 304 to a caller who has the present balances, and another tag after a change', async () => {
    const { client } = await newTenant()
    const { invoiceId } = await invoiced(client, 1_000, 'A')
    const account = `/accounts/${await receivablesOf(client, 'A')}`
    const first = await client.get(account, await current())
    const tag = { 'if-none-match': first.headers.get('etag') ?? '' }
    expect((await client.get(account, tag)).status).to.equal(304)
    await paid(client, invoiceId, 300)
    const second = await client.get(account, { ...tag, ...(await current()) })
    expect(second.status).to.equal(200)
    expect(second.headers.get('etag')).not.to.equal(first.headers.get('etag'))
  })

  it('hide the accounts and entries of other tenants, and need the scope', async () => {
    const { client } = await newTenant()
    const { client: other } = await newTenant()
    await invoiced(client, 1_000, 'A')
    const [entry] = await itemsOf(client, '/journal-entries')
    for (const path of [
      '/accounts/revenue.USD',
      '/accounts/revenue.USD/entries',
      `/journal-entries/${String(entry?.['id'])}`,
    ])
      expect((await other.get(path, await current())).status, path).to.equal(404)
    expect(await itemsOf(other, '/accounts')).to.deep.equal([])
    expect(await itemsOf(other, `/journal-entries?order_id=${String(entry?.['order_id'])}`)).to.deep.equal([])
    const reader = clientOf(service.api, await service.token({ tenant: 'books-1', scopes: ['orders:read'] }))
    expect((await reader.get('/trial-balance')).status).to.equal(403)
  })
})
