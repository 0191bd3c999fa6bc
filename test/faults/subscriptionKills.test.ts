import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { type Client } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { describeWithOwnBroker, readTopic, type TopicMessage } from '../support/kafka.ts'
import { openPublisherHarness, type PublisherHarness } from './publisherHarness.ts'
import { sell, startTraffic } from './publisherTraffic.ts'
import { breadth } from '../support/breadth.ts'

const TENANTS = ['acme', 'globex'] as const
const KILLS = breadth(2, 12)
/** A publisher delivers 0.3 s after it is ready: some are killed before that, most after. */
const LIFE_MAX_MS = 1_200
const TYPES = ['order.created', 'order.cancelled', 'invoice.paid', 'payment.succeeded']
const CREATED = { types: TYPES, start: 'beginning' }
/** Of each tenant. */
const FACTS_MIN = 50
/** Of both tenants: three of four requests cause a fact of these types. */
const REQUESTS_MIN = 4 * FACTS_MIN

describeWithOwnBroker('subscriptions, while their publisher is killed', () => {
  let harness: PublisherHarness
  let clients: readonly Client[]
  before(async () => {
    harness = await openPublisherHarness()
    clients = await Promise.all(TENANTS.map(tenant => harness.client(tenant)))
  })
  after(() => harness?.close())

  const idOf = ({ headers }: TopicMessage): string => headers['ce_id'] ?? ''
  const bytesOf = ({ partition, key, headers, value }: TopicMessage): string =>
    JSON.stringify([partition, key, Object.entries(headers), value])

  it('are accepted without a broker, and report the number of waiting facts', async () => {
    const [client] = clients
    const { status, body } = (await client?.post('/subscriptions', CREATED)) ?? {}
    expect([status, body.state, body.acl]).to.deep.equal([201, 'active', 'none'])
    await client?.post('/orders', { currency: 'USD', lines: [{ sku: 'tea', quantity: 1, unit_amount: 1 }] })
    await eventually(async () => (await client?.get(`/subscriptions/${body.id}`))?.body.lag === 1)
  })

  it(`get each of their facts in order, and no other, over ${KILLS} kills`, async () => {
    const made = await Promise.all(
      clients.map(async client => (await client.post('/subscriptions', CREATED)).body as { id: string; topic: string }),
    )
    const traffic = startTraffic(clients.map(client => ({ client })))
    for (let kill = 1; kill <= KILLS; kill++) {
      const publisher = await harness.startPublisher()
      await delay(Math.random() * LIFE_MAX_MS)
      await publisher.end('SIGKILL')
    }
    await traffic.until(REQUESTS_MIN)
    await traffic.stop()
    await harness.startPublisher()
    await harness.drained()
    for (const [index, { id, topic }] of made.entries()) {
      const client = clients[index]
      await eventually(async () => (await client?.get(`/subscriptions/${id}`))?.body.lag === 0)
      const facts = (await harness.served(TENANTS[index] ?? '')).filter(({ type }) => TYPES.includes(type))
      const messages = await readTopic(harness.brokers(), topic)
      expect(facts).to.have.length.above(FACTS_MIN)
      expect(new Set(messages.map(idOf)), 'none is missing, none is surplus').to.deep.equal(
        new Set(facts.map(fact => fact.id)),
      )
      for (const copies of Map.groupBy(messages, idOf).values())
        expect(new Set(copies.map(bytesOf)).size, 'duplicates are equal byte for byte').to.equal(1)
      for (const [key, ofKey] of Map.groupBy(messages, message => message.key))
        expect([...new Set(ofKey.map(idOf))], `the order of ${key}`).to.deep.equal(
          facts.filter(({ subject }) => subject === key).map(fact => fact.id),
        )
      process.stdout.write(`      ${facts.length} facts, ${messages.length - facts.length} duplicates\n`)
    }
  })

  it('get facts again, byte for byte, after a kill between acknowledgement and checkpoint', async () => {
    const [client] = clients
    if (client === undefined) return expect.fail('there is no client')
    await harness.killPublishers()
    const { id, topic } = (await client.post('/subscriptions', CREATED)).body
    const publisher = await harness.startPublisher()
    const lag = async () => (await client.get(`/subscriptions/${id}`)).body.lag
    await eventually(async () => (await readTopic(harness.brokers(), topic).catch(() => [])).length > 0)
    await eventually(async () => (await lag()) === 0)
    const before = await readTopic(harness.brokers(), topic)
    await harness.database.transaction(async sql => {
      // The lock on the row prevents the publisher from moving the checkpoint.
      await sql('select 1 from subscription_deliveries where subscription_id = $1 for update', [id])
      await sell(client)
      await eventually(async () => (await readTopic(harness.brokers(), topic)).length > before.length)
      await publisher.end('SIGKILL')
      // Postgres would still execute the statement of a killed process.
      await sql(
        'select pg_terminate_backend(pid) from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))',
      )
    })
    await harness.startPublisher()
    await harness.drained()
    await eventually(async () => (await lag()) === 0)
    const messages = await readTopic(harness.brokers(), topic)
    const copies = [...Map.groupBy(messages, idOf).values()]
    expect(messages.length, 'there are duplicates').to.be.above(copies.length)
    for (const same of copies) expect(new Set(same.map(bytesOf)).size).to.equal(1)
  })
})
