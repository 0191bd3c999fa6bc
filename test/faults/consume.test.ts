import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import type { Kafka } from '../../scripts/kafka/broker.ts'
import { openCopy } from '../../scripts/ledger/consume/copy.ts'
import { consumeKafka } from '../../scripts/ledger/consume/kafka.ts'
import { findFreePort } from '../../src/embedded/freePorts.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { openFactBus } from '../../src/adapters/kafka/factBus.ts'
import { run, start } from '../scripts/cli.ts'
import { breadth } from '../support/breadth.ts'
import { anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../support/client.ts'
import { inParallel, pay } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { describeWithOwnBroker, readTopic } from '../support/kafka.ts'
import { NOT_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH, openKafkaProxy } from '../support/kafkaProxy.ts'
import { rejectionOf } from '../support/rejection.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { startBroker } from '../support/preparedBroker.ts'
import { removeFolder } from '../support/folders.ts'

/** `ledger consume` and manifests on a real broker, as an analyst uses them. */

type Fact = {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly position: string
  readonly sequence: string
  readonly tenantid: string
}
type Verified = {
  readonly ok: boolean
  readonly topics: readonly {
    readonly topic: string
    readonly ranges: readonly { readonly agrees: boolean; readonly had: { count: number }; wanted: { count: number } }[]
    readonly missing: readonly Fact[]
    readonly surplus: readonly Fact[]
    readonly findings: readonly string[]
    readonly unproved: number
  }[]
}

const TENANTS = ['north', 'south'] as const
const KILLS = breadth(2, 6)

describeWithOwnBroker('ledger consume, from Kafka', () => {
  let dataDir: string
  let kafka: Kafka
  let service: ServiceProcess
  let folder: string
  let copies = 0
  let proxy: Awaited<ReturnType<typeof openKafkaProxy>>
  const clients: Client[] = []

  before(async () => {
    dataDir = await temporaryDirectory()
    await mkdir(join(dataDir, 'kafka'))
    proxy = await openKafkaProxy()
    const port = await findFreePort('127.0.0.1')
    proxy.lead(port)
    kafka = await startBroker({ dataDir: join(dataDir, 'kafka'), port, advertisedPort: proxy.port })
    service = await startProcess(join(dataDir, 'ledger'), { KAFKA_BROKERS: kafka.brokers.join(',') })
    for (const tenant of TENANTS) clients.push(clientOf(service.api, await service.token({ tenant })))
    await trade(24)
    await published()
  })
  after(async () => {
    await service?.end('SIGTERM')
    await kafka?.stop()
    await proxy?.close()
    await removeFolder(dataDir)
  })
  beforeEach(() => {
    copies += 1
    folder = join(dataDir, `copy-${copies}`)
  })

  const clientAt = (n: number): Client => clients[n % clients.length] ?? expect.fail()
  const trade = (count: number): Promise<unknown> =>
    inParallel(4, Array.from({ length: count }), async (_, n) => {
      const client = clientAt(n)
      const { invoiceId } = await approvedInvoice(client, 300)
      await pay(client, aPayment(invoiceId, { amount: 300 }))
      await client.post('/orders', anOrder())
    })
  const served = async (): Promise<Fact[]> => {
    const facts: Fact[] = []
    for (const client of clients)
      for (let cursor = ''; ; ) {
        const { body } = await client.get(`/events?limit=100${cursor}`)
        facts.push(...body.items)
        if (body.page.has_more !== true) break
        cursor = `&cursor=${body.page.next_cursor}`
      }
    return inOrder(facts)
  }
  const inOrder = (facts: readonly Fact[]): Fact[] =>
    facts.toSorted((a, b) => (BigInt(a.position) < BigInt(b.position) ? -1 : 1))
  const messages = async () =>
    (await Promise.all(MANIFEST_TOPICS.map(topic => readTopic(kafka.brokers, topic).catch(() => [])))).flat()
  /** Resolves when every fact that GET /events has is in the topics. */
  const published = (): Promise<unknown> =>
    eventually(async () => {
      const ids = new Set((await messages()).map(({ headers }) => headers['ce_id']))
      return (await served()).every(({ id }) => ids.has(id))
    })

  const ledger = (...args: string[]) => run('ledger.ts', args, { LEDGER_DATA_DIR: join(dataDir, 'ledger') })
  const consume = async (...args: string[]) => {
    const ended = await ledger('consume', '--from', 'kafka', '--copy', folder, '--json', ...args)
    expect(ended.code, ended.stderr).to.equal(0)
    return JSON.parse(ended.stdout) as { taken: number; repeated: number; late: number }
  }
  const verify = async (...args: string[]) => {
    const ended = await ledger('consume', 'verify', '--copy', folder, '--json', ...args)
    return { code: ended.code, report: JSON.parse(ended.stdout) as Verified }
  }
  const seal = async () => {
    const { items } = JSON.parse((await ledger('manifest', '--json')).stdout) as {
      items: { topic: string; sealed: { from_position: string; to_position: string; count: number } | null }[]
    }
    const sealed = items.filter(item => item.sealed !== null).length
    const before = sealedInTopic
    sealedInTopic += sealed
    await eventually(async () => (await readTopic(kafka.brokers, 'ledger.manifest.v1')).length === before + sealed)
    return items
  }
  let sealedInTopic = 0
  const linesOf = async (topic: string): Promise<string[]> =>
    (await readFile(join(folder, `${topic}.jsonl`), 'utf8')).split('\n').filter(line => line !== '')
  const copied = async (): Promise<Fact[]> => {
    const files = (await readdir(folder)).filter(name => name.endsWith('.jsonl') && !name.startsWith('ledger.manifest'))
    const lines = await Promise.all(files.map(name => linesOf(name.replace('.jsonl', ''))))
    return inOrder(lines.flat().map(line => JSON.parse(line) as Fact))
  }
  const expectOrderPerKey = async (): Promise<void> => {
    for (const topic of MANIFEST_TOPICS) {
      const facts = (await linesOf(topic)).map(line => JSON.parse(line) as Fact)
      for (const [key, ofKey] of Map.groupBy(facts, ({ subject }) => subject)) {
        const sequences = ofKey.map(({ sequence }) => sequence)
        expect(sequences, key).to.deep.equal(sequences.toSorted())
      }
    }
  }

  it('writes every fact of every tenant once, as the manifests prove', async () => {
    const facts = await served()
    expect(await consume()).to.include({ taken: facts.length, repeated: 0, late: 0 })
    expect(await copied()).to.deep.equal(facts)
    await expectOrderPerKey()
    const early = await verify()
    expect([early.code, early.report.ok]).to.deep.equal([1, false])
    expect(early.report.topics[0]?.findings[0]).to.include('no manifest')

    const items = await seal()
    expect(items.map(({ topic }) => topic)).to.deep.equal(MANIFEST_TOPICS)
    expect(items.reduce((sum, { sealed }) => sum + (sealed?.count ?? 0), 0)).to.equal(facts.length)
    expect((await consume()).taken).to.equal(MANIFEST_TOPICS.length)
    const { code, report } = await verify()
    expect([code, report.ok], JSON.stringify(report)).to.deep.equal([0, true])
    expect(report.topics.flatMap(({ ranges }) => ranges).reduce((sum, { had }) => sum + had.count, 0)).to.equal(
      facts.length,
    )
  })

  it('continues in its consumer group, and verifies consecutive manifests', async () => {
    await consume()
    await trade(4)
    await published()
    await seal()
    await consume()
    const { code, report } = await verify()
    expect([code, report.ok], JSON.stringify(report)).to.deep.equal([0, true])
    for (const { ranges, unproved } of report.topics) expect([ranges.length >= 2, unproved]).to.deep.equal([true, 0])
    expect(await copied()).to.deep.equal(await served())
  })

  it('waits for a broker that is not the coordinator of its group yet', async () => {
    for (const request of [OFFSET_FETCH, OFFSET_COMMIT]) {
      proxy.refuse(request, NOT_COORDINATOR, 3)
      await consume()
      expect(proxy.replaced(), `${request}`).to.equal(3)
      expect(await copied()).to.deep.equal(await served())
      folder = `${folder}-anew`
    }
  })

  it('ends with one sentence when the broker does not become the coordinator of its group', async () => {
    for (const [request, reason] of [
      [OFFSET_FETCH, 'This is not the correct coordinator for this group'],
      [OFFSET_COMMIT, 'it delivers nothing, or accepts no progress'],
    ] as const) {
      proxy.refuse(request, NOT_COORDINATOR, Number.POSITIVE_INFINITY)
      const copy = await openCopy(`${folder}-${request}`, { from: 'kafka', topics: undefined }, MANIFEST_TOPICS)
      const { signal } = new AbortController()
      const consuming = { kafka: { brokers: kafka.brokers }, copy, follow: false, signal, onProgress: () => undefined }
      const error = await rejectionOf(consumeKafka({ ...consuming, refusedMaxMs: 3_000 }))
      await copy.close()
      expect(error).to.be.instanceOf(StartupError)
      expect(error.message).to.equal(
        `Kafka has refused for 3 s: ${reason}. If its brokers are starting, wait until they have, then run this command again.`,
      )
    }
    proxy.refuse(OFFSET_FETCH, NOT_COORDINATOR, 0)
  })

  it('drops duplicates', async () => {
    await consume('--topic', 'ledger.invoice.v1')
    const known = await readTopic(kafka.brokers, 'ledger.invoice.v1')
    const bus = openFactBus({ brokers: kafka.brokers, clientId: 'tests', logger: { warn: () => undefined } })
    await bus.publish(known.map(({ key, headers, value }) => ({ topic: 'ledger.invoice.v1', key, headers, value })))
    await bus.close()
    expect(await consume()).to.include({ taken: 0, repeated: known.length, late: 0 })
    expect((await verify()).report.ok).to.equal(true)

    // A new consumer reads every one of them twice.
    folder = `${folder}-anew`
    expect(await consume('--topic', 'ledger.invoice.v1')).to.include({ repeated: known.length, late: 0 })
    expect((await copied()).length).to.equal(known.length)
    expect((await verify()).report.ok).to.equal(true)
  })

  it(`survives ${KILLS} kills while facts come, without a gap or a duplicate`, async () => {
    const args = ['consume', '--from', 'kafka', '--copy', folder, '--follow']
    const lengthOf = () =>
      copied().then(
        facts => facts.length,
        () => 0,
      )
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = await lengthOf()
      const { child, ended } = start('ledger.ts', args, { LEDGER_DATA_DIR: join(dataDir, 'ledger') })
      const traffic = trade(12)
      // The kill comes when some facts are written and more are to come.
      await eventually(async () => (await lengthOf()) > before)
      await sleep(kill * 20)
      child.kill('SIGKILL')
      await ended
      await traffic
    }
    await published()
    await seal()
    await consume()
    const facts = await served()
    expect((await copied()).map(({ id }) => id)).to.deep.equal(facts.map(({ id }) => id))
    await expectOrderPerKey()
    const { code, report } = await verify()
    expect([code, report.ok], JSON.stringify(report)).to.deep.equal([0, true])
  })

  it('reports the range in which a fact is missing, and names the fact when its tenant is given', async () => {
    await consume()
    const topic = 'ledger.invoice.v1'
    const lines = await linesOf(topic)
    const at = lines.findIndex(line => (JSON.parse(line) as Fact).tenantid === 'south')
    const lost = JSON.parse(lines[at] ?? '') as Fact
    await writeFile(
      join(folder, `${topic}.jsonl`),
      lines
        .toSpliced(at, 1)
        .map(line => `${line}\n`)
        .join(''),
    )
    const blind = await verify()
    expect([blind.code, blind.report.ok]).to.deep.equal([1, false])
    const wrong = blind.report.topics.flatMap(({ ranges }) => ranges.filter(({ agrees }) => !agrees))
    expect(wrong.map(({ had, wanted }) => wanted.count - had.count)).to.deep.equal([1])
    expect(blind.report.topics.flatMap(({ missing }) => missing)).to.deep.equal([])

    const { code, report } = await verify('--tenant', 'south')
    expect(code).to.equal(1)
    const { id, type, subject, position } = lost
    const missing = report.topics.flatMap(one => one.missing)
    expect(missing).to.have.length(1)
    expect(missing[0]).to.include({ id, type, subject, position })
    expect((await verify('--tenant', 'north')).report.topics.flatMap(one => one.missing)).to.deep.equal([])
  })

  it('notices that a manifest is missing', async () => {
    await consume()
    const path = join(folder, 'ledger.manifest.v1.jsonl')
    const lines = await linesOf('ledger.manifest.v1')
    type Sealed = { data: { topic: string; from_position: string; to_position: string } }
    const chain = lines
      .map(line => ({ line, ...(JSON.parse(line) as Sealed).data }))
      .filter(({ topic }) => topic === MANIFEST_TOPICS[0])
      .toSorted((one, other) => (BigInt(one.from_position) < BigInt(other.from_position) ? -1 : 1))
    const lost = chain[1]
    if (lost === undefined || chain.length < 3) return expect.fail('there is no manifest between two others')
    await writeFile(
      path,
      lines
        .filter(line => line !== lost.line)
        .map(line => `${line}\n`)
        .join(''),
    )
    const { code, report } = await verify()
    expect([code, report.ok]).to.deep.equal([1, false])
    expect(report.topics[0]?.findings[0]).to.include(
      `There is no manifest of positions ${lost.from_position} to ${lost.to_position}`,
    )
  })
})
