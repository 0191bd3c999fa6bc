import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { type EventStore, Unavailable } from '../../../src/ports.ts'
import { type Answer, anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { newKey, pay } from '../../support/client.ts'
import { sharedService, type TestService, writtenBy } from '../../support/service.ts'
import { caller, startVariant, TENANT, type Difference } from '../../support/serviceVariants.ts'

/** An event store that fails between the steps of one request. */

type Effect = 'none' | 'unknown'

/** Four appends (idempotency record, reference, reservation, outcome) exceed the deadline of a payment. */
const SLOW_APPEND_MS = 1_400

/**
 * The store is available for `appends` appends and any reads between them, and then unavailable until it is restored.
 */
const losing = (appends: number, effect: Effect = 'none') => {
  let left = appends
  const check = (): void => {
    if (left <= 0) throw new Unavailable('event store', { effect, cause: new Error('planted') })
  }
  const store = (real: EventStore): EventStore => ({
    ...real,
    append: async (...requested) => {
      check()
      left -= 1
      return real.append(...requested)
    },
    async *readStream(...requested) {
      if (left <= 0) throw new Unavailable('event store', { effect: 'none', cause: new Error('planted') })
      yield* real.readStream(...requested)
    },
  })
  return { store, restore: () => void (left = Number.POSITIVE_INFINITY) }
}

describe('an event store that fails in the middle of a request', () => {
  let service: TestService
  let client: Client
  let realStore: EventStore
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT, subject: 'tester' }))
    realStore = openEventStore({ connectionString: service.addresses.event_store })
  })
  after(() => realStore.close())

  const through = async <T>(wrong: Difference, work: (through: Client) => Promise<T>): Promise<T> => {
    const variant = await startVariant(service, wrong)
    try {
      return await work(clientOf(variant.api))
    } finally {
      await variant.close()
    }
  }

  const paid = async (settlement: 'immediate' | 'deferred'): Promise<string> => {
    const { invoiceId } = await approvedInvoice(client)
    const payment = await pay(client, aPayment(invoiceId, { settlement }))
    expect(payment.status).to.equal(201)
    return payment.body.id
  }

  const commands: Readonly<Record<string, () => Promise<(by: Client) => Promise<Answer>>>> = {
    'a refund': async () => {
      const path = `/payments/${await paid('immediate')}:refund`
      const key = newKey()
      return by => by.post(path, { amount: 10, reason: 'broken' }, { 'idempotency-key': key })
    },
    'a settlement': async () => {
      const path = `/payments/${await paid('deferred')}:settle`
      return by => by.post(path, {})
    },
    'a failure': async () => {
      const path = `/payments/${await paid('deferred')}:fail`
      return by => by.post(path, { code: 'declined' })
    },
    'an invoice': async () => {
      const order = await client.post('/orders', anOrder())
      const key = newKey()
      return by => by.post('/invoices', { order_id: order.body.id }, { 'idempotency-key': key })
    },
  }

  for (const [name, prepare] of Object.entries(commands)) {
    it(`prevents every effect of ${name} before its first event, which is answered with 503`, async () => {
      const send = await prepare()
      const after = await realStore.head()
      const answer = await through({ store: losing(0).store }, send)
      expect(answer.body).to.include({ status: 503, code: 'dependency_unavailable' })
      expect(await writtenBy(realStore, { after, answers: [answer] })).to.deep.equal([])
    })

    it(`leaves the effect of ${name} unknown after its first event, and the same request resolves it`, async () => {
      const send = await prepare()
      const { store, restore } = losing(1)
      await through({ store }, async broken => {
        expect((await send(broken)).body).to.include({ status: 504, code: 'deadline_exceeded' })
        restore()
        expect((await send(broken)).status).to.be.oneOf([200, 201])
      })
    })
  }

  for (const effect of ['none', 'unknown'] as const)
    it(`never causes an internal error in a payment, at any append, with effect ${effect}`, async () => {
      const { invoiceId } = await approvedInvoice(client)
      const key = newKey()
      const statuses: number[] = []
      for (let appends = 0; statuses.at(-1) !== 201; appends += 1) {
        const body = aPayment(invoiceId, { reference: `R-${effect}-${invoiceId}` })
        const { store } = losing(appends, effect)
        statuses.push((await through({ store }, broken => pay(broken, body, key))).status)
        expect(statuses.at(-1), `after ${appends} appends`).to.be.oneOf([201, 202, 503, 504])
      }
      expect(statuses).to.include(202)
    })

  it('that is only slow causes 202, and no wait beyond the deadline', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const store = (real: EventStore): EventStore => ({
      ...real,
      append: (...requested) => sleep(SLOW_APPEND_MS).then(() => real.append(...requested)),
    })
    const headers = { 'idempotency-key': newKey(), prefer: 'wait=6' }
    const answer = await through({ store }, slow =>
      slow.post('/payments', aPayment(invoiceId, { reference: invoiceId }), headers),
    )
    expect(answer.status, answer.text).to.equal(202)
    expect(answer.headers.get('preference-applied')).to.equal('wait=4')
  })

  for (const effect of ['none', 'unknown'] as const)
    it(`turns a refusal that cannot be recorded into 503, when the failed append has the effect ${effect}`, async () => {
      const { invoiceId } = await approvedInvoice(client)
      const withoutScope = { ...caller, scopes: new Set(['payments:read' as const]) }
      const store = (real: EventStore): EventStore => ({
        ...real,
        append: () => Promise.reject(new Unavailable('event store', { effect, cause: new Error('planted') })),
      })
      const refusals = await through({ store, authenticate: async () => withoutScope }, broken =>
        Promise.all([
          pay(broken, aPayment(invoiceId)),
          broken.post(`/invoices/${invoiceId}:approve`, {}, { 'if-match': '*' }),
        ]),
      )
      refusals.push(await through({ store }, broken => pay(broken, aPayment(invoiceId, { amount: 1_000_000 }))))
      for (const { body } of refusals) expect(body).to.include({ status: 503, code: 'dependency_unavailable' })
    })

  it('delays 412 until the newer version is readable', async () => {
    const order = await client.post('/orders', anOrder())
    const path = `/orders/${order.body.id}`
    const etag = order.headers.get('etag') ?? ''
    const stream = `order-${order.body.id}`
    const cancel = (by: Client) => by.post(`${path}:cancel`, {}, { 'if-match': etag })
    /** A concurrent write is committed when ours arrives, but becomes readable only after `reads` more reads. */
    const hiding = (reads: number): NonNullable<Difference['store']> => {
      let left = reads
      let isDecided = false
      return real => ({
        ...real,
        append: async (name, ...rest) => {
          if (name === stream && !isDecided) expect((await cancel(client)).status).to.equal(200)
          isDecided ||= name === stream
          return real.append(name, ...rest)
        },
        async *readStream(name, options) {
          const isHidden = name === stream && isDecided && left > 0
          if (isHidden) left -= 1
          for await (const event of real.readStream(name, options)) if (!isHidden || event.revision === 0n) yield event
        },
      })
    }
    const stale = await through({ store: hiding(2) }, cancel)
    expect(stale.body).to.include({ status: 412, code: 'precondition_failed' })
    expect(stale.headers.get('etag')).to.not.equal(etag)
    expect(stale.headers.get('etag')).to.equal((await client.get(path)).headers.get('etag'))
  })

  it('causes a retryable 503 while the newer version stays unreadable', async () => {
    const order = await client.post('/orders', anOrder())
    const store = (real: EventStore): EventStore => ({
      ...real,
      append: async (_, __, expected) => ({ ok: false, actual: expected === 'no_stream' ? 0n : expected + 1n }),
    })
    const answer = await through({ store }, broken =>
      broken.post(`/orders/${order.body.id}:cancel`, {}, { 'if-match': order.headers.get('etag') ?? '' }),
    )
    expect(answer.body).to.include({ status: 503, code: 'dependency_unavailable' })
    expect(answer.headers.get('retry-after')).to.not.equal(null)
  })
})
