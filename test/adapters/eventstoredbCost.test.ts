import { once } from 'node:events'
import { createServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore, NewEvent } from '../../src/ports.ts'
import { event, newStream } from '../contracts/eventStoreFixtures.ts'
import { type TestNode, startTestNode } from '../embedded/eventStoreNode.ts'
import { holdsInOneOf } from '../support/comparedTimes.ts'
import { eventually } from '../support/eventually.ts'
import { costOf, costsOf } from '../support/linearCost.ts'

const EVENTS = 20_000
const PER_APPEND = 500
/**
 * The ratio to the client's own read: 1.05 with its decoder, 0.5 without, 0.25 without the layers of the gRPC library; up to
 * 0.45 beside other tests.
 */
const COST_RATIO_MAX = 0.7
const APPENDS = 1_500
const IN_FLIGHT = 64
/** The ratio to the client's own appends: 0.9 through the gRPC library with the generated classes, 0.3 without both. */
const APPEND_COST_RATIO_MAX = 0.5
const WINDOW_BYTES_MIN = 1024 * 1024

const METADATA = {
  tenant: 'acme',
  subject: 'clerk',
  client: 'shop',
  authority: 'payments:write',
  at: '2026-11-22T06:20:10.000Z',
  schemaVersion: 1,
  $correlationId: 'ff0102ac-0304-4506-8708-090a0b0c0d0e',
  $causationId: 'ff0102ac-0304-4506-8708-090a0b0c0d0e',
}

const fill = async (store: EventStore, stream: string): Promise<void> => {
  for (let at = 0; at < EVENTS; at += PER_APPEND) {
    const payments = Array.from({ length: PER_APPEND }, (_, n) => ({
      ...event({ payment_id: `pay_${String(at + n).padStart(26, '0')}`, amount: 100 }, 'PaymentApplied'),
      metadata: METADATA,
    }))
    const appended = await store.append(stream, payments, at === 0 ? 'no_stream' : BigInt(at - 1))
    expect(appended.ok).to.equal(true)
  }
}

const countOf = async (items: AsyncIterable<unknown>): Promise<number> => {
  let count = 0
  for await (const _ of items) count += 1
  return count
}

/** Keeps appends in flight until so many are acknowledged. */
const appendAll = async (append: (stream: string) => Promise<unknown>): Promise<void> => {
  let begun = 0
  const lane = async (): Promise<void> => {
    for (; begun < APPENDS; ) {
      begun += 1
      await append(newStream('payment'))
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
}

const payment = (): NewEvent => ({
  ...event({ payment_id: 'pay_01234567890123456789012345', amount: 100, note: 'x'.repeat(300) }, 'PaymentReserved'),
  metadata: METADATA,
})

describe('the cost of appends through the EventStoreDB adapter', () => {
  let node: TestNode
  let store: EventStore
  let client: EventStoreDBClient

  before(async () => {
    node = await startTestNode()
    store = openEventStore({ connectionString: node.address, appendDeadlineMs: 30_000 })
    client = EventStoreDBClient.connectionString(`${node.address}&defaultDeadline=30000`)
  })
  after(async () => {
    await client?.dispose()
    await store?.close()
    await node?.stop()
  })

  it("of which many are in flight is well below that of the client's own appends", async () => {
    const ours = async (): Promise<void> =>
      appendAll(async stream => expect((await store.append(stream, [payment()], 'no_stream')).ok).to.equal(true))
    const clients = (): Promise<void> =>
      appendAll(stream => client.appendToStream(stream, [jsonEvent(payment())], { expectedRevision: 'no_stream' }))
    await holdsInOneOf(async () => {
      const [our = Infinity, their = 0] = await costsOf([ours, clients])
      expect(our / their).to.be.lessThan(APPEND_COST_RATIO_MAX)
    })
  })
})

describe('the cost of a long read through the EventStoreDB adapter', () => {
  describe('of 20,000 events', () => {
    const stream = newStream('invoice')
    let node: TestNode
    let store: EventStore
    let client: EventStoreDBClient

    before(async () => {
      node = await startTestNode()
      store = openEventStore({ connectionString: node.address, appendDeadlineMs: 30_000 })
      client = EventStoreDBClient.connectionString(node.address)
      await fill(store, stream)
    })
    after(async () => {
      await client?.dispose()
      await store?.close()
      await node?.stop()
    })

    it("is well below that of the client's own read", async () => {
      const counts = new Set<number>()
      await holdsInOneOf(async () => {
        const ours = await costOf(async () => counts.add(await countOf(store.readStream(stream))))
        const clients = await costOf(async () => counts.add(await countOf(client.readStream(stream))))
        expect(ours / clients).to.be.lessThan(COST_RATIO_MAX)
      })
      expect([...counts]).to.deep.equal([EVENTS])
    })
  })

  it('is not dominated by waiting, because the windows of call and connection are 1 MiB', async () => {
    const sessions: ServerHttp2Session[] = []
    const server = createServer()
    server.on('session', session => sessions.push(session))
    server.on('stream', stream => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const store = openEventStore({ connectionString: `esdb://127.0.0.1:${port}?tls=false` })
    try {
      for (let read = 0; read < 2; read += 1) expect(await countOf(store.readStream('s-1'))).to.equal(0)
      const widened = (session: ServerHttp2Session): boolean =>
        (session.remoteSettings.initialWindowSize ?? 0) >= WINDOW_BYTES_MIN &&
        (session.state.remoteWindowSize ?? 0) >= WINDOW_BYTES_MIN
      await eventually(() => sessions.length === 1 && sessions.every(widened))
    } finally {
      await store.close()
      for (const session of sessions) session.destroy()
      server.close()
    }
  })
})
