import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { append } from '../../src/adapters/eventstoredb/append.ts'
import { openConnection } from '../../src/adapters/eventstoredb/connection.ts'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { readStream } from '../../src/adapters/eventstoredb/read.ts'
import { StreamEnds } from '../../src/adapters/eventstoredb/streamEnds.ts'
import { all, event, newStream } from '../contracts/eventStoreFixtures.ts'
import { startTestNode, type TestNode } from '../embedded/eventStoreNode.ts'
import { rejectionOf } from '../support/rejection.ts'

const AT_ONCE = 64
const APPEND_DEADLINE_MS = 10_000
const CALL_CREATED = 'http2.client.stream.created'
const READ_PATH = '/event_store.client.streams.Streams/Read'

/** Counts the Read calls that this process begins while the work is done. */
const readCallsOf = async (work: () => Promise<unknown>): Promise<number> => {
  let count = 0
  const listener = (message: unknown): void => {
    const { headers } = message as { stream: ClientHttp2Stream; headers: OutgoingHttpHeaders }
    if (headers[':path'] === READ_PATH) count += 1
  }
  subscribe(CALL_CREATED, listener)
  await work().finally(() => unsubscribe(CALL_CREATED, listener))
  return count
}

describe('EventStoreDB adapter: the ends of streams', () => {
  describe('as they are remembered', () => {
    let head = 0n
    let reads = 0
    let ends: StreamEnds

    beforeEach(() => {
      head = 0n
      reads = 0
      ends = new StreamEnds()
    })

    const readHead = async (): Promise<bigint> => {
      reads += 1
      return head
    }
    const endsBefore = (stream: string, from: bigint): Promise<boolean> => ends.endsBefore(stream, from, readHead)

    it('are known for a stream that was read, while the log does not grow', async () => {
      head = 100n
      ends.readToEnd('a', 3n, 100n)
      expect(await endsBefore('a', 3n)).to.equal(true)
      expect(await endsBefore('a', 4n)).to.equal(true)
      expect(await endsBefore('a', 2n)).to.equal(false)
      expect(await endsBefore('b', 0n)).to.equal(false)
    })

    it('are known for a stream that was appended to', async () => {
      head = 250n
      ends.appended('a', { revision: 7n, position: 250n })
      expect(await endsBefore('a', 8n)).to.equal(true)
      expect(await endsBefore('a', 7n)).to.equal(false)
    })

    it('are unknown once the log has grown, and the head is not read again for the same stream', async () => {
      ends.readToEnd('a', 3n, 100n)
      head = 101n
      expect(await endsBefore('a', 3n)).to.equal(false)
      expect(await endsBefore('a', 3n)).to.equal(false)
      expect(reads).to.equal(1)
    })

    it('are unknown without a read of the head when a newer event of another stream was seen', async () => {
      ends.readToEnd('a', 3n, 100n)
      ends.appended('b', { revision: 0n, position: 200n })
      head = 200n
      expect(await endsBefore('a', 3n)).to.equal(false)
      expect(reads).to.equal(0)
    })

    it('are read by one read of the head, which begins after all of the reads that share it', async () => {
      head = 100n
      for (let n = 0; n < AT_ONCE; n += 1) ends.readToEnd(`s${n}`, 1n, 100n)
      const requested = Array.from({ length: AT_ONCE }, (_, n) => endsBefore(`s${n}`, 1n))
      // An event that is committed after the requests came and before the read of the head begins.
      head = 101n
      expect(new Set(await Promise.all(requested))).to.deep.equal(new Set([false]))
      expect(reads).to.equal(1)
    })

    it('keep the newer of two ends that were found at the same time', async () => {
      head = 300n
      ends.appended('a', { revision: 9n, position: 300n })
      // A read that began before the append.
      ends.readToEnd('a', 9n, 200n)
      expect(await endsBefore('a', 9n)).to.equal(false)
      expect(await endsBefore('a', 10n)).to.equal(true)
    })

    it('are forgotten when the head is older than an event that was seen: it is another log', async () => {
      head = 400n
      ends.readToEnd('a', 3n, 400n)
      expect(await endsBefore('a', 3n)).to.equal(true)
      head = 50n
      expect(await endsBefore('a', 3n)).to.equal(false)
      head = 400n
      expect(await endsBefore('a', 3n)).to.equal(false)
    })

    it('are not forgotten when an event is appended while the head is read', async () => {
      head = 400n
      ends.readToEnd('a', 3n, 400n)
      const requested = endsBefore('a', 3n)
      ends.appended('b', { revision: 0n, position: 500n })
      expect(await requested).to.equal(true)
      head = 500n
      expect(await endsBefore('b', 1n)).to.equal(true)
    })

    it('are unknown when the head cannot be read', async () => {
      ends.readToEnd('a', 1n, 100n)
      const failing = ends.endsBefore('a', 1n, () => Promise.reject(new Error('lost')))
      expect(String(await rejectionOf(failing))).to.contain('lost')
    })
  })

  describe('of a real log', () => {
    let node: TestNode

    before(async () => {
      node = await startTestNode()
    })
    after(() => node.stop())

    it('are read from the stream itself when the connection is renewed while the head is read', async () => {
      const connection = openConnection(node.address)
      const stream = newStream()
      await append(connection, { stream, events: [event()], expected: 'no_stream' }, APPEND_DEADLINE_MS)
      expect(await all(readStream(connection, stream, {}))).to.have.lengthOf(1)
      const reading = all(readStream(connection, stream, { from: 1n }))
      await turn()
      connection.renew(connection.client)
      expect(await reading).to.deep.equal([])
      await connection.close()
    })

    it('cost one call for reads that begin together, and one for each stream after the log has grown', async () => {
      const store = openEventStore({ connectionString: node.address })
      const streams = Array.from({ length: AT_ONCE }, () => newStream())
      for (const stream of streams) await store.append(stream, [event()], 'no_stream')
      const readAll = () => Promise.all(streams.map(stream => all(store.readStream(stream, { from: 1n }))))
      expect(await readCallsOf(readAll)).to.be.at.least(AT_ONCE - 1)
      expect(await readCallsOf(readAll)).to.equal(1)
      await store.append(newStream(), [event()], 'no_stream')
      expect(await readCallsOf(readAll)).to.equal(AT_ONCE)
      expect(await readCallsOf(readAll)).to.equal(1)
      await store.close()
    })
  })
})
