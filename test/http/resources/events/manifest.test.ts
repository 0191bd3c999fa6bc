import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { REQUEST_DEADLINE_MS, waitMaxMs } from '../../../../src/settings/timeBudgets.ts'
import { realWorld } from '../../../../src/lib/clockAndRandomness.ts'
import { MANIFEST_TOPICS } from '../../../../projections/factTopics.ts'
import { anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../../support/client.ts'
import { inParallel, newKey, pay } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { sharedService, type TestService } from '../../../support/service.ts'
import { caller, startVariant } from '../../../support/serviceVariants.ts'
import { randomOf } from '../../../support/virtualWorld.ts'

type Fact = { readonly id: string; readonly subject: string; readonly position: string; readonly tenantid: string }
type Item = {
  readonly topic: string
  readonly from_position: string
  readonly to_position: string
  readonly count: number
  readonly sha256: string
  readonly at: string
}

const TOPICS: Readonly<Record<string, string>> = {
  ord: 'ledger.order.v1',
  inv: 'ledger.invoice.v1',
  pay: 'ledger.payment.v1',
  op: 'ledger.operation.v1',
}
const RANGES = 60
/** The longest wait within the deadline of a request. */
const WAIT_MAX_MS = waitMaxMs(REQUEST_DEADLINE_MS)
const BEYOND = '4611686018427387904'

const topicOf = ({ subject }: Fact): string => TOPICS[subject.split('_')[0] ?? ''] ?? 'none'

/**
 * An independent implementation of the contract: SHA-256 over the ids in position order, each followed by a line feed.
 */
const digestOf = (facts: readonly Fact[]) => ({
  count: facts.length,
  sha256: createHash('sha256')
    .update(facts.map(({ id }) => `${id}\n`).join(''))
    .digest('hex'),
})

describe('GET /events/manifest', () => {
  let service: TestService
  const clients: Client[] = []
  const factsOf = new Map<Client, readonly Fact[]>()
  let asOf = ''

  const read = async (client: Client, query = ''): Promise<Item[]> =>
    (await client.get(`/events/manifest${query}`)).body.items
  const allFacts = async (client: Client): Promise<Fact[]> => {
    const facts: Fact[] = []
    for (let cursor = ''; ; ) {
      const { body } = await client.get(`/events?limit=100${cursor}`)
      facts.push(...body.items)
      if (body.page.has_more !== true) return facts
      cursor = `&cursor=${body.page.next_cursor}`
    }
  }
  const createFacts = async (client: Client): Promise<void> => {
    const { invoiceId } = await approvedInvoice(client, 300)
    await pay(client, aPayment(invoiceId, { amount: 100 }))
    await pay(client, aPayment(invoiceId, { amount: 200 }))
    await client.post('/orders', anOrder())
  }

  before(async () => {
    service = await sharedService()
    for (const name of ['one', 'two']) {
      const tenant = `manifest-${name}-${newKey().slice(0, 8)}`
      clients.push(clientOf(service.api, await service.token({ tenant })))
    }
    await inParallel(4, Array.from({ length: 24 }), (_, n) => createFacts(clients[n % 2] ?? expect.fail()))
    for (const client of clients) {
      // Six facts each time: an order, an approved invoice, two payments, the paid invoice and another order.
      await eventually(async () => (await allFacts(client)).length === 72)
      factsOf.set(client, await allFacts(client))
    }
    const pages = await Promise.all(clients.map(client => client.get('/events?limit=1')))
    asOf = pages.map(({ body }) => String(body.page.as_of_position)).toSorted((a, b) => Number(a) - Number(b))[0] ?? ''
  })

  it('has an item for each topic, of all facts by default', async () => {
    for (const client of clients) {
      const items = await read(client)
      expect(items.map(({ topic }) => topic)).to.deep.equal(MANIFEST_TOPICS)
      for (const item of items) {
        const { topic, count, sha256 } = item
        const own = factsOf.get(client)?.filter(fact => topicOf(fact) === topic) ?? []
        expect({ count, sha256 }).to.deep.equal(digestOf(own))
        expect(item.from_position).to.equal('0')
        expect(BigInt(item.to_position) >= BigInt(asOf)).to.equal(true)
        expect(Math.abs(Date.now() - Date.parse(item.at))).to.be.lessThan(60_000)
      }
      expect(items.map(({ count }) => count)).to.deep.equal([24, 24, 24, 0])
    }
  })

  it(`equals for any range the count and hash of a reader of GET /events, ${RANGES} times for each tenant`, async () => {
    const random = randomOf(7)
    for (const client of clients) {
      const facts = factsOf.get(client) ?? []
      const positions = facts.map(({ position }) => Number(position))
      const first = Math.min(...positions)
      const last = Math.max(...positions)
      await inParallel(4, Array.from({ length: RANGES }), async () => {
        // A random position near the tenant's facts, in half of the cases exactly at one.
        const pick = () =>
          random() < 0.5
            ? (positions[Math.floor(random() * positions.length)] ?? 0)
            : first + Math.floor(random() * (last - first + 1))
        const [from = 0, to = 0] = [pick(), pick()].toSorted((a, b) => a - b)
        for (const { topic, ...item } of await read(client, `?from=${from}&to=${to}`)) {
          const own = facts.filter(
            fact => topicOf(fact) === topic && Number(fact.position) >= from && Number(fact.position) <= to,
          )
          expect(item, `${topic} ${from} to ${to}`).to.deep.include({
            from_position: String(from),
            to_position: String(to),
            ...digestOf(own),
          })
        }
      })
    }
  })

  it('includes both ends of the range, and adds up over adjacent ranges', async () => {
    const [client] = clients
    const facts = (client && factsOf.get(client)) ?? []
    const payments = facts.filter(fact => topicOf(fact) === 'ledger.payment.v1')
    const [first, second, third] = payments
    if (client === undefined || first === undefined || second === undefined || third === undefined)
      return expect.fail('There are fewer than three payments.')
    const query = (from: string, to: string) => `?topic=ledger.payment.v1&from=${from}&to=${to}`
    const [one] = await read(client, query(first.position, first.position))
    expect(one).to.deep.include(digestOf([first]))
    const [three] = await read(client, query(first.position, third.position))
    expect(three).to.deep.include(digestOf(payments.slice(0, 3)))
    const beforeSecond = String(BigInt(second.position) - 1n)
    const adjacent = [
      await read(client, query(first.position, beforeSecond)),
      await read(client, query(second.position, third.position)),
    ]
    expect(adjacent.map(([item]) => item?.count)).to.deep.equal([1, 2])
    const behindFirst = String(BigInt(first.position) + 1n)
    const [none] = await read(client, query(behindFirst, beforeSecond))
    expect(none).to.deep.include(digestOf([]))
  })

  it('counts nothing of another tenant', async () => {
    const otherTenant = clientOf(service.api, await service.token({ tenant: `manifest-none-${newKey().slice(0, 8)}` }))
    for (const item of await read(otherTenant)) expect(item).to.deep.include(digestOf([]))
  })

  it('refuses a range that ends before it begins, with a pointer', async () => {
    const [client] = clients
    const { status, body } = (await client?.get('/events/manifest?from=10&to=9')) ?? expect.fail()
    expect([status, body.code]).to.deep.equal([400, 'validation_failed'])
    expect(body.errors).to.deep.equal([
      { pointer: '?from', code: 'too_big', detail: 'The range ends before it starts.' },
    ])
  })

  it('refuses malformed positions, topics and parameters', async () => {
    const [client] = clients
    const codes = {
      '?from=-1': 'validation_failed',
      '?to=1e3': 'validation_failed',
      '?from=1.5': 'validation_failed',
      '?to=99999999999999999999': 'validation_failed',
      '?to=9223372036854775808': 'validation_failed',
      '?topic=ledger.manifest.v1': 'validation_failed',
      '?topic=invoices': 'validation_failed',
      '?limit=3': 'unknown_parameter',
    }
    for (const [query, code] of Object.entries(codes)) {
      const { status, body } = (await client?.get(`/events/manifest${query}`)) ?? expect.fail()
      expect([status, body.code], query).to.deep.equal([400, code])
    }
  })

  it('refuses a range that ends beyond the log, and names its end', async () => {
    const [client] = clients
    for (const query of [`?to=${BEYOND}`, `?from=${BEYOND}&to=${BEYOND}`]) {
      const { status, body } = (await client?.get(`/events/manifest${query}`)) ?? expect.fail()
      expect([status, body.code, body.errors[0].pointer], query).to.deep.equal([400, 'validation_failed', '?to'])
      expect(body.errors[0].detail).to.match(/^The log ends at position \d+\./)
      expect(body.retry).to.include({ retryable: false })
    }
  })

  it('answers 503 to a range that begins in the future', async () => {
    const { status, body } = (await clients[0]?.get(`/events/manifest?from=${BEYOND}`)) ?? expect.fail()
    expect([status, body.code]).to.deep.equal([503, 'projection_behind'])
    expect(body.retry).to.include({ retryable: true, strategy: 'same_request' })
  })

  it('waits for the facts as long as the caller prefers', async () => {
    const [client] = clients
    if (client === undefined) return expect.fail()
    const { headers } = await client.post('/orders', anOrder())
    const to = headers.get('ledger-position') ?? ''
    const answer = await client.get(`/events/manifest?topic=ledger.order.v1&to=${to}`, { prefer: 'wait=5' })
    expect([answer.status, answer.headers.get('preference-applied')]).to.deep.equal([200, 'wait=5'])
    expect(answer.body.items[0]).to.include({ to_position: to, count: 25 })
  })

  it('streams the body of a count that exceeds the longest wait', async () => {
    const [client] = clients
    const tenant = factsOf.get(client ?? expect.fail())?.[0]?.tenantid ?? ''
    const variant = await startVariant(service, {
      // The request deadline is unchanged; every shorter sleep ends at once.
      world: {
        sleep: async (timeMs, signal) => (timeMs > WAIT_MAX_MS ? realWorld().sleep(timeMs, signal) : undefined),
      },
      authenticate: async () => ({ ...caller, tenant }),
    })
    try {
      const { status, headers, body } = await clientOf(variant.api).get(`/events/manifest?to=${asOf}`)
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'application/json'])
      expect(headers.get('content-length')).to.equal(null)
      const expected = (await client?.get(`/events/manifest?to=${asOf}`))?.body.items
      const withoutTime = (items: Item[]) => items.map(({ at: _, ...item }) => item)
      expect(withoutTime(body.items)).to.deep.equal(withoutTime(expected))
    } finally {
      await variant.close()
    }
  })

  it('has no facts of the system tenant, which no token can name', async () => {
    const [client] = clients
    const refusal = await service.token({ tenant: 'ledger' }).catch((error: unknown) => error)
    expect(refusal).to.be.instanceOf(Error).and.to.have.property('message').that.includes('reserved')
    expect((await client?.get('/events?type=ledger.manifest'))?.body.items).to.deep.equal([])
  })
})
