import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { NO_REVISION, type StoredRecord } from '../../src/embedded/eventstore/record.ts'
import { entryOf, openStreams } from '../../src/embedded/eventstore/streams.ts'
import { openTail } from '../../src/embedded/eventstore/tail.ts'

/** The memory of the embedded event store's caches, however many events and streams there were. */

const EVENTS = 60_000
const MIB = 1024 * 1024
/** Both caches, and the ids of the newest events. */
const CACHES_MAX_MIB = 52

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const usedMib = (): number => {
  // The second collection waits for the memory that the first one frees in the background.
  collectGarbage()
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / MIB
}

/** Names and payloads that share no memory with those of other events, as they arrive from a socket. */
const eventOf = (n: number, bytes: number): StoredRecord => ({
  position: BigInt(n + 1) * 1_000n,
  stream: Buffer.from(`payment-pay_${String(n).padStart(26, '0')}`).toString(),
  revision: 0n,
  id: Buffer.from(`${String(n).padStart(8, '0')}-0000-4000-8000-000000000000`).toString(),
  type: 'PaymentRequested',
  isJson: true,
  data: Buffer.alloc(bytes, n),
  metadata: Buffer.alloc(bytes / 2, n),
  createdTicks: BigInt(n),
})

describe('the memory of the embedded event store', () => {
  const filled = (events: number, bytes: number) => {
    const tail = openTail()
    const streams = openStreams()
    for (let n = 0; n < events; n += 1) {
      const event = eventOf(n, bytes)
      streams.offer(event.stream, entryOf({ stream: event.stream, head: NO_REVISION, meta_head: null, meta: null }))
      streams.committed(event)
      tail.append([event])
    }
    return { tail, streams }
  }

  for (const [events, bytes] of [
    [EVENTS, 40],
    [EVENTS, 400],
    [EVENTS / 10, 40_000],
  ] as const)
    it(`is bounded in bytes after ${events} events of ${bytes} bytes, each in a stream of its own`, () => {
      const before = usedMib()
      const caches = filled(events, bytes)
      expect(usedMib() - before).to.be.below(CACHES_MAX_MIB)
      expect(caches.tail.head()).to.equal(BigInt(events) * 1_000n)
    })

  it('keeps the newest events for live subscribers', () => {
    const { tail } = filled(EVENTS, 400)
    const newest = tail.after(BigInt(EVENTS - 1_000) * 1_000n, EVENTS)
    expect(newest?.map(({ position }) => position)).to.have.length(1_000)
  })
})
