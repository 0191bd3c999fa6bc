import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { anOrder, aPayment, approvedInvoice, type Client, clientOf, retryingFetch } from '../../../support/client.ts'
import { inParallel, newKey, pay } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { type Sent, sentIn } from '../../../support/factSchemaCheck.ts'
import { sharedService, type TestService } from '../../../support/service.ts'

type Fact = { readonly id: string; readonly type: string; readonly subject: string; readonly [name: string]: unknown }

const SSE = 'text/event-stream'

describe('GET /events', () => {
  let service: TestService
  let token: string
  let client: Client
  before(async () => {
    service = await sharedService()
    // Each run of this file has its own tenant, because its facts are counted.
    const tenant = `events-${newKey().slice(0, 8)}`
    token = await service.token({ tenant })
    client = clientOf(service.api, token)
    const paidInTwo = await approvedInvoice(client, 300)
    await pay(client, aPayment(paidInTwo.invoiceId, { amount: 100 }))
    await pay(client, aPayment(paidInTwo.invoiceId, { amount: 200 }))
    await inParallel(8, Array.from({ length: 20 }), () => client.post('/orders', anOrder()))
    await eventually(async () => (await client.get('/events?limit=100')).body.items.length === 25)
  })

  const all = async (path = '/events?limit=100'): Promise<Fact[]> => (await client.get(path)).body.items

  /** The first `count` events of the stream. */
  const listen = async (
    { query = '', count, headers = {} }: { query?: string; count: number; headers?: Record<string, string> },
    meanwhile: () => Promise<unknown> = async () => undefined,
  ): Promise<Sent[]> => {
    const abort = new AbortController()
    const response = await retryingFetch(`${service.api}/events${query}`, {
      headers: { authorization: `Bearer ${token}`, accept: SSE, ...headers },
      signal: abort.signal,
    })
    expect(response.status).to.equal(200)
    expect(response.headers.get('content-type')).to.equal(SSE)
    const sent: Sent[] = []
    let text = ''
    let begun = false
    if (response.body === null) throw new Error('No stream.')
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      if (!begun) await meanwhile()
      begun = true
      text += chunk
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      sent.push(...blocks.flatMap(sentIn))
      if (sent.length >= count) break
    }
    abort.abort()
    return sent
  }

  it('lists the facts in the order of the log, each once, with the ids of their events', async () => {
    const facts = await all()
    expect(new Set(facts.map(({ id }) => id)).size).to.equal(facts.length)
    const types = facts.map(({ type }) => type)
    expect(types.slice(0, 5)).to.deep.equal([
      ...['order.created', 'invoice.approved', 'payment.succeeded', 'invoice.paid', 'payment.succeeded'],
    ])
    const invoiceId = facts[1]?.subject
    const store = openEventStore({ connectionString: service.addresses.event_store })
    const stored: string[] = []
    for await (const { id, type } of store.readStream(`invoice-${invoiceId}`))
      if (type === 'InvoiceApproved' || type === 'InvoicePaid') stored.push(id)
    await store.close()
    expect((await all(`/events?subject=${invoiceId}`)).map(({ id }) => id)).to.deep.equal(stored)
  })

  it('pages through them without a gap or a repetition, and continues at the end', async () => {
    const facts = await all()
    const paged: Fact[] = []
    let cursor = ''
    for (let more = true; more; ) {
      const { body } = await client.get(`/events?limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`)
      paged.push(...body.items)
      cursor = body.page.next_cursor
      more = body.page.has_more
    }
    expect(paged).to.deep.equal(facts)
    const quiet = await client.get(`/events?cursor=${cursor}`)
    expect(quiet.body.items).to.deep.equal([])
    const order = await client.post('/orders', anOrder())
    const next = await eventually(async () => {
      const { items } = (await client.get(`/events?cursor=${quiet.body.page.next_cursor}`)).body
      return items.length > 0 && items
    })
    expect(next.map(({ subject }: Fact) => subject)).to.deep.equal([order.body.id])
  })

  it('filters by type, subject, position and time', async () => {
    const facts = await all()
    const paid = facts.filter(({ type }) => type === 'invoice.paid')
    expect(await all('/events?type=invoice.paid')).to.deep.equal(paid)
    expect(paid).to.have.lengthOf(1)
    expect(await all(`/events?from_time=2020-01-01T00:00:00Z&limit=3`)).to.deep.equal(facts.slice(0, 3))
    expect(await all(`/events?from_time=2999-01-01T00:00:00Z`)).to.deep.equal([])
    const { as_of_position } = (await client.get('/events')).body.page
    expect(await all(`/events?from_position=0&limit=100`)).to.deep.equal(facts)
    expect(await all(`/events?from_position=${BigInt(as_of_position) + 1n}`)).to.deep.equal([])
  })

  it('has no facts of another tenant', async () => {
    const otherTenant = clientOf(service.api, await service.token({ tenant: 'events-other' }))
    const [mine] = await all()
    expect((await otherTenant.get(`/events?subject=${mine?.subject}`)).body.items).to.deep.equal([])
  })

  it('streams the history, then new facts, with the same facts and ids as the pages', async () => {
    const before = await all()
    let order = ''
    const sent = await listen({ count: before.length + 1 }, async () => {
      order = (await client.post('/orders', anOrder())).body.id
    })
    expect(sent.slice(0, -1).map(({ data }) => data)).to.deep.equal(before)
    expect(sent.at(-1)?.data.subject).to.equal(order)
    for (const { event, data } of sent) expect(event).to.equal(data.type)
    expect(sent.map(({ data }) => data)).to.deep.equal(await all())
  })

  it('continues directly after the Last-Event-ID, also as a page after a stream and as a stream after a page', async () => {
    const facts = await all()
    const sent = await listen({ count: 10 })
    const tenth = sent[9]?.id ?? ''
    const rest = await listen({ count: facts.length - 10, headers: { 'last-event-id': tenth } })
    expect([...sent.slice(0, 10), ...rest].map(({ data }) => data)).to.deep.equal(facts)
    expect(await all(`/events?limit=100&cursor=${tenth}`)).to.deep.equal(facts.slice(10))
    const { next_cursor } = (await client.get('/events?limit=4')).body.page
    const fromPage = await listen({ query: `?cursor=${next_cursor}`, count: 3 })
    expect(fromPage.slice(0, 3).map(({ data }) => data)).to.deep.equal(facts.slice(4, 7))
  })

  it('streams only the type that was asked for', async () => {
    const sent = await listen({ query: '?type=payment.succeeded', count: 2 })
    expect(sent.map(({ event }) => event)).to.deep.equal(['payment.succeeded', 'payment.succeeded'])
  })

  it('refuses a Last-Event-ID that it did not issue for this stream, before the stream begins', async () => {
    const [first] = await listen({ count: 1 })
    const headers = { accept: SSE, 'last-event-id': first?.id ?? '' }
    const otherTenant = clientOf(service.api, await service.token({ tenant: 'events-other' }))
    for (const answer of [
      await client.get('/events', { ...headers, 'last-event-id': 'forged' }),
      await client.get('/events?type=invoice.paid', headers),
      await otherTenant.get('/events', headers),
    ])
      expect(answer.body).to.include({ status: 400, code: 'cursor_invalid' })
  })

  it('offers JSON and server-sent events only', async () => {
    for (const accept of ['application/json', '*/*', 'application/*;q=0.1', 'text/html, application/json'])
      expect((await client.get('/events?limit=1', { accept })).status, accept).to.equal(200)
    const refused = await client.get('/events', { accept: 'text/csv' })
    expect(refused.body).to.include({ status: 406, code: 'not_acceptable' })
  })
})
