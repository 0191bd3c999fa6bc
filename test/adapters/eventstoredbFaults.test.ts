import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openConnection } from '../../src/adapters/eventstoredb/connection.ts'
import { readStream } from '../../src/adapters/eventstoredb/read.ts'
import { type EventStore, Unavailable } from '../../src/ports.ts'
import { all, caughtUp, event, events, feed, idsOf, newCategory, newStream } from '../contracts/eventStoreFixtures.ts'
import { openTcpProxy } from '../support/tcpProxy.ts'
import { type TestNode, startTestNode } from '../embedded/eventStoreNode.ts'

const DEADLINE_MS = 1000
/** Above the append's own deadline; without that the append would wait without limit. */
const SLACK_MS = 10_000
const HEAL_MAX_MS = 10_000

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('EventStoreDB adapter without an answer of the store', function () {
  this.timeout(60_000)
  let node: TestNode
  let store: EventStore

  before(async () => {
    node = await startTestNode()
    store = openEventStore({ connectionString: node.address, appendDeadlineMs: DEADLINE_MS })
  })
  after(async () => {
    await store.close()
    await node.stop()
  })

  it('reports no effect if nothing listens', async () => {
    const nobody = openEventStore({ connectionString: 'esdb://127.0.0.1:1?tls=false', appendDeadlineMs: DEADLINE_MS })
    const failures = [
      await failureOf(nobody.append(newStream(), [event()], 'no_stream')),
      await failureOf(all(nobody.readStream(newStream()))),
      await failureOf(nobody.head()),
    ]
    for (const failure of failures)
      expect(failure).to.be.instanceOf(Unavailable).and.to.include({ dependency: 'event store', effect: 'none' })
    await nobody.close()
  })

  it('gives up a hung append at the deadline as unknown; the same ids settle it afterwards', async () => {
    const stream = newStream()
    const sent = [event()]
    await store.append(newStream(), [event()], 'no_stream')
    process.kill(node.pid(), 'SIGSTOP')
    const startedAt = performance.now()
    const failure = await failureOf(store.append(stream, sent, 'no_stream'))
    const tookMs = performance.now() - startedAt
    process.kill(node.pid(), 'SIGCONT')
    expect(failure).to.be.instanceOf(Unavailable).and.to.include({ effect: 'unknown' })
    expect(tookMs).to.be.within(DEADLINE_MS - 50, DEADLINE_MS + SLACK_MS)
    expect(await store.append(stream, sent, 'no_stream')).to.deep.include({ ok: true, revision: 0n })
    expect(idsOf(await all(store.readStream(stream)))).to.deep.equal(idsOf(sent))
  })

  for (const direction of ['forwards', 'backwards'] as const)
    it(`continues a read ${direction} that is interrupted when another call renews the connection`, async () => {
      const stream = newStream()
      const sent = events(1_500)
      const patient = openEventStore({ connectionString: node.address })
      await patient.append(stream, sent, 'no_stream')
      await patient.close()
      const connection = openConnection(node.address)
      const read: string[] = []
      for await (const { id } of readStream(connection, stream, { direction, limit: 1_400 })) {
        if (read.length === 10) connection.renew(connection.client)
        read.push(id)
        await Promise.resolve()
      }
      await connection.close()
      const wanted = direction === 'forwards' ? idsOf(sent) : idsOf(sent).toReversed()
      expect(read).to.deep.equal(wanted.slice(0, 1_400))
    })

  it('gives up a hung read, and recovers', async () => {
    const stream = newStream()
    await store.append(stream, [event()], 'no_stream')
    process.kill(node.pid(), 'SIGSTOP')
    const failure = await failureOf(all(store.readStream(stream)))
    process.kill(node.pid(), 'SIGCONT')
    expect(failure).to.be.instanceOf(Unavailable).and.to.include({ effect: 'none' })
    expect(await all(store.readStream(stream))).to.have.length(1)
  })

  it('gives up a half-open connection: after a read that failed, the next one has a connection of its own', async () => {
    const stream = newStream()
    await store.append(stream, [event()], 'no_stream')
    const proxy = await openTcpProxy()
    proxy.lead(Number(new URL(node.address).port))
    const behind = openEventStore({ connectionString: `esdb://127.0.0.1:${proxy.port}?tls=false` })
    try {
      for (let read = 0; read < 2; read += 1) expect(await all(behind.readStream(stream))).to.have.length(1)
      proxy.silence()
      expect(await failureOf(all(behind.readStream(stream)))).to.be.instanceOf(Unavailable)
      expect(await all(behind.readStream(stream))).to.have.length(1)
    } finally {
      await behind.close()
      await proxy.close()
    }
  })

  it('resends an interrupted append once, and nothing is stored twice', async () => {
    for (let round = 0; round < 5; round += 1) {
      const sends = Array.from({ length: 20 }, () => ({ stream: newStream(), sent: [event(), event()] }))
      const outcomes = sends.map(({ stream, sent }) => failureOf(store.append(stream, sent, 'no_stream')))
      node.kill()
      for (const outcome of await Promise.all(outcomes))
        if (outcome !== undefined) expect(outcome).to.be.instanceOf(Unavailable)
      await heal()
      for (const { stream, sent } of sends) {
        await store.append(stream, sent, 'no_stream')
        expect(idsOf(await all(store.readStream(stream)))).to.deep.equal(idsOf(sent))
      }
    }
  })

  it('continues a feed after the last event when the store hangs, dies, and comes back', async () => {
    const category = newCategory()
    const received = feed(store, { after: await store.head(), categories: [category] })
    await received.until(caughtUp)
    const sent = [event(), event(), event()]
    await store.append(newStream(category), sent.slice(0, 1), 'no_stream')
    process.kill(node.pid(), 'SIGSTOP')
    await sleep(500)
    node.kill()
    await heal()
    await store.append(newStream(category), sent.slice(1), 'no_stream')
    await received.until(({ events }) => events.length === sent.length)
    await received.stop()
    expect(idsOf(received.events)).to.deep.equal(idsOf(sent))
  })

  const heal = async (): Promise<void> => {
    for (const startedAt = performance.now(); performance.now() - startedAt < HEAL_MAX_MS; await sleep(50))
      if ((await failureOf(store.append(newStream(), [event()], 'no_stream'))) === undefined) return
    throw new Error('The store did not heal in time.')
  }
})
