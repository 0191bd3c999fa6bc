import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import kafkajs from 'kafkajs'
import { type Client } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { describeWithOwnBroker } from '../support/kafka.ts'
import { duplicatesIn, type ObservedFacts, expectNothingButDuplicates, observeFacts } from './observedFacts.ts'
import { openPublisherHarness, type Publisher, type PublisherHarness, TOPICS } from './publisherHarness.ts'
import { FACTS_PER_SALE, makeExport, sell, startTraffic, type Traffic } from './publisherTraffic.ts'
import { breadth } from '../support/breadth.ts'

const KILLS = breadth(2, 20)
/** A publisher publishes 0.1 s after it is ready: some are killed before that, most after. */
const LIFE_MAX_MS = 600
const FACTS_MIN = breadth(100, 200)
/** Each request of a sale causes one fact; the last sale of each client may be incomplete when a request is counted. */
const REQUESTS_MIN = FACTS_MIN + 10 * FACTS_PER_SALE
const FACT_TYPES_SEEN = [
  'order.created',
  'order.cancelled',
  'invoice.approved',
  'invoice.paid',
  'payment.succeeded',
  'payment.refunded',
  'export.completed',
]
/** Published while two publishers run. */
const TOGETHER_FACTS = 3 * FACTS_PER_SALE
const REQUESTS_BEFORE_OUTAGE = 20
/** Generous, for a machine under load: a request that waited for the broker would have failed. */
const ANSWER_MAX_MS = 60_000
const PARTITIONS = 12
const SEVEN_DAYS_MS = 604_800_000

const UNTRACED = 'untraced'
const TRACED = 'traced'
const TENANTS = [UNTRACED, TRACED]
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`
const CORRELATION_ID = 'publisher-faults-1'

describeWithOwnBroker('the publisher on a real broker with faults', () => {
  let harness: PublisherHarness
  let clients: readonly Client[]
  let traffic: Traffic | undefined
  before(async () => {
    harness = await openPublisherHarness()
  })
  // Tokens expire after five minutes, so each test gets new ones.
  beforeEach(async () => {
    clients = await Promise.all(TENANTS.map(tenant => harness.client(tenant)))
  })
  afterEach(async () => {
    await traffic?.stop()
    await harness.killPublishers()
  })
  after(() => harness?.close())

  const headersOf = (tenant?: string): Readonly<Record<string, string>> =>
    tenant === TRACED ? { traceparent: TRACEPARENT, 'x-correlation-id': CORRELATION_ID } : {}

  const beginTraffic = (): Traffic => {
    traffic = startTraffic(clients.map((client, index) => ({ client, headers: headersOf(TENANTS[index]) })))
    return traffic
  }

  const endTraffic = async (): Promise<void> => {
    await traffic?.stop()
    const refused = traffic?.requests.filter(({ status }) => status !== 200 && status !== 201)
    expect(refused, 'no fault of the publisher refuses a request').to.deep.equal([])
  }

  /** A fact carries the trace and the correlation of its request, and of no other. */
  const expectTraces = ({ published }: ObservedFacts): void => {
    for (const { headers } of published) {
      const traced = headers['ce_tenantid'] === TRACED
      expect(headers['traceparent']).to.equal(traced ? TRACEPARENT : undefined)
      expect(headers['ce_correlationid'] === CORRELATION_ID).to.equal(traced)
    }
  }

  const expectConsistent = async (): Promise<ObservedFacts> => {
    const observed = await observeFacts(harness, TENANTS)
    expectNothingButDuplicates(observed)
    expectTraces(observed)
    return observed
  }

  const untilLive = (publisher: Publisher) => eventually(async () => (await publisher.feed()) === 'live')

  it(`loses no fact and adds none over ${KILLS} kills`, async () => {
    const { until } = beginTraffic()
    for (let kill = 1; kill <= KILLS; kill++) {
      const publisher = await harness.startPublisher()
      await delay(Math.random() * LIFE_MAX_MS)
      await publisher.end('SIGKILL')
    }
    await until(REQUESTS_MIN)
    await endTraffic()
    await harness.startPublisher()
    await makeExport(await harness.client(UNTRACED))
    const { committed } = await expectConsistent()
    expect(committed).to.have.length.above(FACTS_MIN)
    expect(new Set(committed.map(({ fact }) => fact.type))).to.deep.equal(new Set(FACT_TYPES_SEEN))
  })

  it('publishes again, byte for byte, after a kill between acknowledgement and checkpoint', async () => {
    const client = await harness.client(UNTRACED)
    const publisher = await harness.startPublisher()
    await untilLive(publisher)
    const before = await expectConsistent()
    await harness.database.transaction(async sql => {
      // The lock on the row prevents the publisher from moving its checkpoint.
      await sql("select 1 from checkpoints where name = 'publisher' for update")
      await sell(client)
      await eventually(async () => (await harness.published()).length > before.published.length)
      await publisher.end('SIGKILL')
      // Postgres would still execute the statement of a killed process.
      await sql(
        'select pg_terminate_backend(pid) from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))',
      )
    })
    await harness.startPublisher()
    const after = await expectConsistent()
    expect(after.committed.length - before.committed.length).to.equal(FACTS_PER_SALE)
    expect(duplicatesIn(after)).to.be.above(duplicatesIn(before))
  })

  it('runs in one of two processes, and the other takes over after a kill', async () => {
    const first = await harness.startPublisher()
    await untilLive(first)
    const before = await expectConsistent()
    const second = await harness.startPublisher()
    beginTraffic()
    await eventually(async () => (await second.feed()) === 'waiting')
    await eventually(async () => (await harness.published()).length >= before.published.length + TOGETHER_FACTS)
    expect([await first.feed(), await second.feed()]).to.deep.equal(['live', 'waiting'])
    await endTraffic()
    expect(duplicatesIn(await expectConsistent()), 'published by both').to.equal(duplicatesIn(before))
    beginTraffic()
    await first.end('SIGKILL')
    await untilLive(second)
    await endTraffic()
    await expectConsistent()
  })

  it('is replaced when it is stopped, and writes nothing when it continues', async () => {
    const stopped = await harness.startPublisher()
    await untilLive(stopped)
    beginTraffic()
    process.kill(stopped.pid, 'SIGSTOP')
    const next = await harness.startPublisher()
    // Postgres ends the session of a stopped holder after 8 s.
    await untilLive(next)
    process.kill(stopped.pid, 'SIGCONT')
    await eventually(async () => (await stopped.feed()) === 'waiting')
    expect(await next.feed()).to.equal('live')
    await endTraffic()
    await expectConsistent()
  })

  it('creates topics with 12 partitions and a retention of 7 days', async () => {
    await untilLive(await harness.startPublisher())
    const admin = new kafkajs.Kafka({ brokers: [...harness.brokers()], logLevel: kafkajs.logLevel.NOTHING }).admin()
    await admin.connect()
    const { topics } = await admin.fetchTopicMetadata({ topics: [...TOPICS] })
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: TOPICS.map(name => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames: ['retention.ms'] })),
    })
    await admin.disconnect()
    expect(topics.map(({ partitions }) => partitions.length)).to.deep.equal(TOPICS.map(() => PARTITIONS))
    const retentions = resources.map(({ configEntries }) => Number(configEntries[0]?.configValue))
    expect(retentions).to.deep.equal(TOPICS.map(() => SEVEN_DAYS_MS))
  })

  it('delivers facts in order after an outage of the broker, while the API answers as before', async () => {
    const first = await harness.startPublisher()
    await untilLive(first)
    const { requests, until } = beginTraffic()
    await until(REQUESTS_BEFORE_OUTAGE)
    await harness.cutBroker()
    await eventually(async () => (await first.feed()) === 'retrying')
    await harness.killPublishers()
    const publisher = await harness.startPublisher()
    await eventually(async () => (await publisher.feed()) === 'retrying')
    await harness.reconnectBroker()
    await untilLive(publisher)
    await endTraffic()
    expect(Math.max(...requests.map(({ tookMs }) => tookMs)), 'the slowest answer').to.be.below(ANSWER_MAX_MS)
    await expectConsistent()
  })
})
