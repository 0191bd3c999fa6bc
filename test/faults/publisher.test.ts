import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import kafkajs from 'kafkajs'
import { type Client, eventually } from '../support/client.ts'
import { describeWithOwnBroker } from '../support/kafka.ts'
import { duplicatesIn, type Evidence, expectNothingButDuplicates, gather } from './publisherEvidence.ts'
import { openStage, type Publisher, type Stage, TOPICS } from './publisherStage.ts'
import { FACTS_PER_SALE, makeExport, sell, startTraffic, type Traffic } from './publisherTraffic.ts'

const KILLS = 20
/** A publisher is at work 0.1 s after it is ready: some are killed before that, most of them after. */
const LIFE_MAX_MS = 600
const FACTS_MIN = 200
const FACT_TYPES_SEEN = [
  'order.created',
  'order.cancelled',
  'invoice.approved',
  'invoice.paid',
  'payment.succeeded',
  'payment.refunded',
  'export.completed',
]
const TURN_MAX_MS = 30_000
/** Postgres ends the session of a holder that is stopped after 8 s. */
const STOPPED_TURN_MAX_MS = 40_000
const TOGETHER_MS = 1_000
/** An outage of 10 s and more: a broker that was killed is not let in again before its old session is over, in 9 s. */
const CUT_MS = 2_000
const HEALED_MAX_MS = 40_000
const ANSWER_MAX_MS = 8_000
const PARTITIONS = 12
const SEVEN_DAYS_MS = 604_800_000

const UNTRACED = 'untraced'
const TRACED = 'traced'
const TENANTS = [UNTRACED, TRACED]
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`
const CORRELATION_ID = 'publisher-faults-1'

describeWithOwnBroker('the publisher and a real broker, in bad times', function () {
  this.timeout(300_000)

  let stage: Stage
  let clients: readonly Client[]
  let traffic: Traffic | undefined
  before(async () => {
    stage = await openStage()
    clients = await Promise.all(TENANTS.map(tenant => stage.client(tenant)))
  })
  afterEach(async () => {
    await traffic?.stop()
    await stage.killPublishers()
  })
  after(() => stage?.close())

  const headersOf = (tenant?: string): Readonly<Record<string, string>> =>
    tenant === TRACED ? { traceparent: TRACEPARENT, 'x-correlation-id': CORRELATION_ID } : {}

  const beginTraffic = (): Traffic => {
    traffic = startTraffic(clients.map((client, index) => ({ client, headers: headersOf(TENANTS[index]) })))
    return traffic
  }

  const endTraffic = async (): Promise<void> => {
    await traffic?.stop()
    const refused = traffic?.requests.filter(({ status }) => status !== 200 && status !== 201)
    expect(refused, 'every request succeeds, whatever happens to the publisher').to.deep.equal([])
  }

  /** A fact carries the trace and the correlation of its request, and of no other. */
  const expectTraces = ({ published }: Evidence): void => {
    for (const { headers } of published) {
      const traced = headers['ce_tenantid'] === TRACED
      expect(headers['traceparent']).to.equal(traced ? TRACEPARENT : undefined)
      expect(headers['ce_correlationid'] === CORRELATION_ID).to.equal(traced)
    }
  }

  const expectAllIsWell = async (): Promise<Evidence> => {
    const evidence = await gather(stage, TENANTS)
    expectNothingButDuplicates(evidence)
    expectTraces(evidence)
    return evidence
  }

  const hasTurn = (publisher: Publisher, maxMs = TURN_MAX_MS) =>
    eventually(async () => (await publisher.feed()) === 'live', maxMs)

  it('loses and invents nothing while it is killed 20 times', async () => {
    beginTraffic()
    for (let kill = 1; kill <= KILLS; kill++) {
      const publisher = await stage.startPublisher()
      await delay(Math.random() * LIFE_MAX_MS)
      await publisher.end('SIGKILL')
    }
    await endTraffic()
    await stage.startPublisher()
    await makeExport(await stage.client(UNTRACED))
    const { committed } = await expectAllIsWell()
    expect(committed).to.have.length.above(FACTS_MIN)
    expect(new Set(committed.map(({ fact }) => fact.type))).to.deep.equal(new Set(FACT_TYPES_SEEN))
  })

  it('publishes again, byte for byte, what it was killed over between the acknowledgement and its note', async () => {
    const client = await stage.client(UNTRACED)
    const publisher = await stage.startPublisher()
    await hasTurn(publisher)
    const before = await expectAllIsWell()
    await stage.database.transaction(async sql => {
      // Whoever holds the row keeps the publisher from noting how far it has got.
      await sql("select 1 from checkpoints where name = 'publisher' for update")
      await sell(client)
      await eventually(async () => (await stage.published()).length > before.published.length)
      await publisher.end('SIGKILL')
      // Postgres would still carry out the note of a process that is gone.
      await sql(
        'select pg_terminate_backend(pid) from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))',
      )
    })
    await stage.startPublisher()
    const after = await expectAllIsWell()
    expect(after.committed.length - before.committed.length).to.equal(FACTS_PER_SALE)
    expect(duplicatesIn(after)).to.be.above(duplicatesIn(before))
  })

  it('leaves the work to one of two, and the other takes over when that one is killed', async () => {
    const first = await stage.startPublisher()
    await hasTurn(first)
    const before = await expectAllIsWell()
    const second = await stage.startPublisher()
    beginTraffic()
    await delay(TOGETHER_MS)
    expect([await first.feed(), await second.feed()]).to.deep.equal(['live', 'waiting'])
    await endTraffic()
    expect(duplicatesIn(await expectAllIsWell()), 'published by both').to.equal(duplicatesIn(before))
    beginTraffic()
    await first.end('SIGKILL')
    await hasTurn(second)
    await endTraffic()
    await expectAllIsWell()
  })

  it('is replaced when it is stopped, and does no harm when it goes on', async () => {
    const stopped = await stage.startPublisher()
    await hasTurn(stopped)
    beginTraffic()
    process.kill(stopped.pid, 'SIGSTOP')
    const next = await stage.startPublisher()
    await hasTurn(next, STOPPED_TURN_MAX_MS)
    process.kill(stopped.pid, 'SIGCONT')
    await eventually(async () => (await stopped.feed()) === 'waiting')
    expect(await next.feed()).to.equal('live')
    await endTraffic()
    await expectAllIsWell()
  })

  it('makes topics of 12 partitions that keep 7 days', async () => {
    await hasTurn(await stage.startPublisher())
    const admin = new kafkajs.Kafka({ brokers: [...stage.brokers()], logLevel: kafkajs.logLevel.NOTHING }).admin()
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

  it('keeps what a stopped broker misses, while the API does not notice, and delivers it in order', async () => {
    await hasTurn(await stage.startPublisher())
    const { requests } = beginTraffic()
    await delay(TOGETHER_MS)
    await stage.cutBroker()
    await delay(CUT_MS)
    await stage.killPublishers()
    const publisher = await stage.startPublisher()
    await eventually(async () => (await publisher.feed()) === 'retrying')
    await stage.restoreBroker()
    await hasTurn(publisher, HEALED_MAX_MS)
    await endTraffic()
    expect(Math.max(...requests.map(({ tookMs }) => tookMs)), 'the slowest answer').to.be.below(ANSWER_MAX_MS)
    await expectAllIsWell()
  })
})
