import { expect } from 'chai'
import type { Turns } from '../../../src/fairness/turns.ts'
import { AS_OF_PAGE } from '../../../src/http/resources/commonReplies.ts'
import { CHANGES_MAX } from '../../../src/commands/streamGrowth.ts'
import { routes } from '../../../src/http/index.ts'
import type { EventStore, ReadOptions } from '../../../src/ports.ts'
import { partsOf } from '../../../streams/aggregate.ts'
import { anOrder, type Answer, approvedInvoice, type Client, clientOf, newKey, pay } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { caller, startVariant, type Variant } from '../../support/serviceVariants.ts'
import { examples } from '../requestExamples.ts'

/** The reads of one request, and their events, are counted at the port of the event store. */

type Read = { readonly category: string; readonly options: ReadOptions; events: number }

const OTHER = 'the others'
const CHANGES = 60

describe('reads of histories', () => {
  let service: TestService
  let reads: Read[] = []
  let variant: Variant
  let own: Client
  let foreign: Client

  const counting = (real: EventStore): EventStore => ({
    ...real,
    async *readStream(stream, options = {}) {
      const read: Read = { category: partsOf(stream).category, options, events: 0 }
      // The status of the caller's tenant is cached, and read again from time to time.
      if (read.category !== 'tenant') reads.push(read)
      for await (const event of real.readStream(stream, options)) {
        read.events++
        yield event
      }
    },
  })
  const readsOf = async (ask: () => Promise<Answer>): Promise<{ answer: Answer; reads: Read[] }> => {
    reads = []
    const answer = await ask()
    return { answer, reads }
  }
  const eventsOf = (list: readonly Read[]): number => list.reduce((sum, { events }) => sum + events, 0)

  before(async () => {
    service = await sharedService()
    // The token names the tenant.
    const authenticate = async ({ headers }: { headers: Record<string, unknown> }) =>
      headers['authorization'] === 'Bearer foreign' ? { ...caller, tenant: OTHER } : caller
    variant = await startVariant(service, { store: counting, authenticate: authenticate as never })
    own = clientOf(variant.api, 'own')
    foreign = clientOf(variant.api, 'foreign')
  })
  after(() => variant.close())

  const change = async (id: string, etag: string, patch: object): Promise<Answer> =>
    own.request('PATCH', `/orders/${id}`, {
      body: patch,
      headers: { 'if-match': etag, 'content-type': 'application/merge-patch+json' },
    })
  const changedOrder = async (patch = (n: number): object => ({ description: `change ${n}` })): Promise<string> => {
    const created = await own.post('/orders', anOrder())
    let etag = created.headers.get('etag') ?? ''
    for (let n = 0; n < CHANGES; n++) etag = (await change(created.body.id, etag, patch(n))).headers.get('etag') ?? ''
    return created.body.id
  }

  it('a page reads one event more than it shows, from the revision of the cursor', async () => {
    const id = await changedOrder()
    const first = await readsOf(() => own.get(`/orders/${id}/history?limit=1`))
    // The first event, for its tenant; those of the page and the one after it; and the newest, for the position.
    expect(eventsOf(first.reads)).to.be.at.most(4)
    const { next_cursor } = first.answer.body.page
    const second = await readsOf(() => own.get(`/orders/${id}/history?limit=10&cursor=${next_cursor}`))
    expect(second.answer.body.items.map(({ revision }: { revision: number }) => revision)).to.deep.equal(
      Array.from({ length: 10 }, (_, n) => n + 1),
    )
    expect(eventsOf(second.reads)).to.be.at.most(13)
    expect(second.answer.body.page.as_of_position).to.equal(first.answer.body.page.as_of_position)
  })

  it('as_of reads no further than the page with the first later event', async () => {
    const id = await changedOrder()
    const { items } = (await own.get(`/orders/${id}/history?limit=3`)).body
    const { answer, reads: asOf } = await readsOf(() => own.get(`/orders/${id}?as_of=${items[0].at}`))
    expect(answer.status).to.equal(200)
    expect(eventsOf(asOf)).to.be.at.most(AS_OF_PAGE + 1)
  })

  it('a repeated key of a payment with refunds reads the first two events', async () => {
    const { invoiceId } = await approvedInvoice(own)
    const key = newKey()
    const body = { invoice_id: invoiceId, amount: 900, currency: 'USD' }
    const { id } = (await pay(own, body, key)).body
    for (let n = 0; n < 20; n++)
      await own.post(`/payments/${id}:refund`, { amount: 1, reason: 'x' }, { 'idempotency-key': newKey() })
    const { answer, reads: repeated } = await readsOf(() => pay(own, body, key))
    expect(answer.headers.get('idempotent-replayed')).to.equal('true')
    const ofPayment = repeated.filter(({ category }) => category === 'payment')
    expect(eventsOf(ofPayment), JSON.stringify(ofPayment)).to.be.at.most(2)
  })

  describe('of an id that is missing, and of one that is another tenant’s, are the same:', () => {
    const kindsOf = (list: readonly Read[]): string[] =>
      list.map(({ category, options: { from = 0n, limit = 'all', direction = 'forwards' } }) =>
        [category, from, limit, direction].join(' '),
      )
    const withId = routes.filter(({ path, scope }) => path.includes('{id}') && scope !== 'none')
    for (const { method, path, operationId, body, bodyType, ifMatch } of withId)
      it(`${method} ${path}`, async () => {
        const make = examples[operationId]
        if (make === undefined) throw new Error(`There is no example of ${operationId}.`)
        const example = await make(own)
        const missing = example.path.replace(/_[0-9A-Z]{26}/, `_${'0'.repeat(26)}`)
        const ask = (to: string) =>
          readsOf(() =>
            foreign.request(method, to, {
              ...(body ? { body: example.body ?? {} } : {}),
              headers: {
                ...example.headers,
                ...(ifMatch ? { 'if-match': '"any"' } : {}),
                ...(bodyType ? { 'content-type': bodyType } : {}),
              },
            }),
          )
        const none = await ask(missing)
        const other = await ask(example.path)
        expect([none.answer.status, other.answer.status]).to.deep.equal([404, 404])
        expect(kindsOf(other.reads)).to.deep.equal(kindsOf(none.reads))
        for (const { events } of other.reads) expect(events).to.be.at.most(1)
      })
  })

  it('an order takes a bounded number of changes; it can then be invoiced, and cancelled', async () => {
    const few = await startVariant(service, {
      services: usual => ({ ...usual, ledger: { ...usual.ledger, changesMax: 10 } }),
      authenticate: async () => caller,
    })
    const client = clientOf(few.api, 'own')
    const created = await client.post('/orders', anOrder())
    const path = `/orders/${created.body.id}`
    const patch = (description: string, etag: string) =>
      client.request('PATCH', path, {
        body: { description },
        headers: { 'if-match': etag, 'content-type': 'application/merge-patch+json' },
      })
    let newest = created
    for (let n = 1; n < 10; n++) newest = await patch(`change ${n}`, newest.headers.get('etag') ?? '')
    const refused = await patch('one more', newest.headers.get('etag') ?? '')
    expect(refused.body).to.include({ status: 409, code: 'too_many_changes' })
    expect(refused.body.retry).to.include({ retryable: false, strategy: 'do_not_retry' })
    // Nothing changes, so nothing is appended.
    expect((await patch('change 9', newest.headers.get('etag') ?? '')).status).to.equal(200)
    const raised = await client.post('/invoices', { order_id: created.body.id })
    expect(raised.status).to.equal(201)
    const voided = await client.post(
      `/invoices/${raised.body.id}:void`,
      { reason: 'x' },
      {
        'if-match': raised.headers.get('etag') ?? '',
      },
    )
    expect(voided.status).to.equal(200)
    // The order is reopened a moment after its invoice is voided.
    const reopened = await eventually(async () => {
      const answer = await client.get(path)
      return answer.body.state === 'open' && answer
    })
    const etag = reopened.headers.get('etag') ?? ''
    expect((await client.post(`${path}:cancel`, {}, { 'if-match': etag })).status).to.equal(200)
    await few.close()
  })

  it('an invoice and a payment with the most events take what ends them, and no further part', async () => {
    const full = await startVariant(service, {
      services: usual => ({ ...usual, ledger: { ...usual.ledger, changesMax: 0 } }),
      authenticate: async () => caller,
    })
    const client = clientOf(full.api, 'own')
    const { invoiceId } = await approvedInvoice(own)
    const payment = { invoice_id: invoiceId, amount: 900, currency: 'USD' }
    expect((await pay(client, { ...payment, amount: 1 })).body.code).to.equal('too_many_changes')
    expect((await pay(client, { ...payment, settlement: 'deferred' })).body.code).to.equal('too_many_changes')
    const paid = await pay(client, payment)
    expect(paid.status).to.equal(201)
    const refund = (amount: number) =>
      client.post(`/payments/${paid.body.id}:refund`, { amount, reason: 'x' }, { 'idempotency-key': newKey() })
    expect((await refund(1)).body.code).to.equal('too_many_changes')
    expect((await refund(900)).status).to.equal(200)
    await full.close()
  })

  it(`the number of changes is ${CHANGES_MAX}`, () => expect(CHANGES_MAX).to.equal(1_000))

  describe('as_of reads one page in each turn of the request, so that other tenants come in between:', () => {
    /** The limit of each read; a read outside a turn counts as one without a limit. */
    const pagesOf = async (id: string): Promise<number[]> => {
      let isInTurn = false
      let entered = 0
      const pages: number[] = []
      const enter: Turns['enter'] = async () => {
        entered += 1
        isInTurn = true
        return () => (isInTurn = false)
      }
      const variant = await startVariant(service, {
        authenticate: async () => caller,
        turns: { tryEnter: () => undefined, enter, isAlone: () => false },
        store: real => ({
          ...real,
          readStream: (stream, options = {}) => {
            if (stream === `order-${id}`) pages.push(isInTurn ? (options.limit ?? Infinity) : Infinity)
            return real.readStream(stream, options)
          },
        }),
      })
      const answer = await clientOf(variant.api, 'own').get(`/orders/${id}?as_of=${new Date().toISOString()}`)
      expect(answer.status).to.equal(200)
      expect(entered).to.be.at.least(pages.length)
      await variant.close()
      return pages
    }

    it('small events in pages that grow', async () => {
      const pages = await pagesOf(await changedOrder())
      expect(pages.length).to.be.greaterThan(2)
      expect(Math.max(...pages)).to.equal(AS_OF_PAGE)
    })

    it('the largest events two at a time', async () => {
      const keys = Array.from({ length: 50 }, (_, key) => `key_${key}`)
      const id = await changedOrder(n => ({
        metadata: Object.fromEntries(keys.map(key => [key, `${n}`.padEnd(480, 'x')])),
      }))
      const pages = await pagesOf(id)
      expect(pages.length).to.be.greaterThan(2)
      expect(Math.max(...pages)).to.be.at.most(2)
    })
  })
})
