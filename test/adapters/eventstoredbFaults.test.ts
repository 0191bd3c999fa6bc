import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openConnection } from '../../src/adapters/eventstoredb/connection.ts'
import { readStream } from '../../src/adapters/eventstoredb/read.ts'
import { type Appended, type EventStore, type NewEvent, Unavailable } from '../../src/ports.ts'
import { all, caughtUp, event, events, feed, idsOf, newCategory, newStream } from '../contracts/eventStoreFixtures.ts'
import { eventually } from '../support/eventually.ts'
import { rejectionOf } from '../support/rejection.ts'
import { openTcpProxy } from '../support/tcpProxy.ts'
import { type TestNode, startTestNode } from '../embedded/eventStoreNode.ts'

const DEADLINE_MS = 1000
const KILLS = 5

describe('EventStoreDB adapter, while the store does not respond', () => {
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

  /** Appends until the store acknowledges it; one attempt may exceed the deadline on a loaded machine. */
  const persist = (stream: string, sent: readonly NewEvent[]): Promise<Appended> =>
    eventually(() => store.append(stream, sent, 'no_stream').catch(() => undefined))

  it('reports no effect if nothing listens', async () => {
    const address = 'esdb://127.0.0.1:1?tls=false'
    const unreachable = openEventStore({ connectionString: address, appendDeadlineMs: DEADLINE_MS })
    const failures = [
      await rejectionOf(unreachable.append(newStream(), [event()], 'no_stream')),
      await rejectionOf(all(unreachable.readStream(newStream()))),
      await rejectionOf(unreachable.head()),
    ]
    for (const failure of failures)
      expect(failure).to.be.instanceOf(Unavailable).and.to.include({ dependency: 'event store', effect: 'none' })
    await unreachable.close()
  })

  it('gives up a hung append at the deadline as unknown; a resend of the same ids completes it', async () => {
    const stream = newStream()
    const sent = [event()]
    await persist(newStream(), [event()])
    process.kill(node.pid(), 'SIGSTOP')
    const beganMs = performance.now()
    // An append without a deadline would never end, because the store continues only afterwards.
    const failure = await rejectionOf(store.append(stream, sent, 'no_stream'))
    const tookMs = performance.now() - beganMs
    process.kill(node.pid(), 'SIGCONT')
    expect(failure).to.be.instanceOf(Unavailable).and.to.include({ effect: 'unknown' })
    expect(tookMs).to.be.at.least(DEADLINE_MS - 50)
    expect(await persist(stream, sent)).to.deep.include({ ok: true, revision: 0n })
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
      const target = direction === 'forwards' ? idsOf(sent) : idsOf(sent).toReversed()
      expect(read).to.deep.equal(target.slice(0, 1_400))
    })

  it('gives up a hung read, and recovers', async () => {
    const stream = newStream()
    await persist(stream, [event()])
    process.kill(node.pid(), 'SIGSTOP')
    const failure = await rejectionOf(all(store.readStream(stream)))
    process.kill(node.pid(), 'SIGCONT')
    expect(failure).to.be.instanceOf(Unavailable).and.to.include({ effect: 'none' })
    expect(await all(store.readStream(stream))).to.have.length(1)
  })

  it('gives up a half-open connection: the read after one that failed has another connection', async () => {
    const stream = newStream()
    await persist(stream, [event()])
    const proxy = await openTcpProxy()
    proxy.lead(Number(new URL(node.address).port))
    const behind = openEventStore({ connectionString: `esdb://127.0.0.1:${proxy.port}?tls=false` })
    try {
      for (let read = 0; read < 2; read += 1) expect(await all(behind.readStream(stream))).to.have.length(1)
      proxy.silence()
      expect(await rejectionOf(all(behind.readStream(stream)))).to.be.instanceOf(Unavailable)
      expect(await all(behind.readStream(stream))).to.have.length(1)
    } finally {
      await behind.close()
      await proxy.close()
    }
  })

  it('resends an interrupted append once, and nothing is stored twice', async () => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      const sends = Array.from({ length: 20 }, () => ({ stream: newStream(), sent: [event(), event()] }))
      const appending = sends.map(({ stream, sent }) => store.append(stream, sent, 'no_stream'))
      node.kill()
      for (const outcome of await Promise.allSettled(appending))
        if (outcome.status === 'rejected') expect(outcome.reason).to.be.instanceOf(Unavailable)
      for (const { stream, sent } of sends) {
        expect(await persist(stream, sent)).to.deep.include({ ok: true, revision: 1n })
        expect(idsOf(await all(store.readStream(stream)))).to.deep.equal(idsOf(sent))
      }
    }
  })

  it('continues a feed after the last event when the store hangs, is killed, and starts again', async () => {
    const category = newCategory()
    const received = feed(store, { after: await store.head(), categories: [category] })
    await received.until(caughtUp)
    const sent = [event(), event(), event()]
    await persist(newStream(category), sent.slice(0, 1))
    process.kill(node.pid(), 'SIGSTOP')
    await sleep(500)
    node.kill()
    await persist(newStream(category), sent.slice(1))
    await received.until(({ events }) => events.length === sent.length)
    await received.stop()
    expect(idsOf(received.events)).to.deep.equal(idsOf(sent))
  })
})
