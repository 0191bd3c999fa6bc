import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { anOrder, type Client, clientOf, inParallel } from '../../support/client.ts'
import { holdsInOneOf } from '../../support/comparedTimes.ts'
import { eventually } from '../../support/eventually.ts'
import { residentMib } from '../../support/residentMemory.ts'
import { quietHead, sharedService, type TestService, writtenSince } from '../../support/service.ts'
import { caller, startVariant, type Variant } from '../../support/serviceVariants.ts'
import { dial, exchange } from '../../support/rawHttp.ts'

/** Slow peers, peers that disconnect in the middle of a request, and decompression bombs. */

const HEADERS_DEADLINE_MS = 10_000
/** Node checks its timeouts once a second, and a busy machine is late. */
const LATE_MAX_MS = 120_000
const BYTE_EVERY_MS = 400
const IDLE_SOCKETS = 2_000
const PROMPT_MS = 500
/** The permitted ratio to the duration without the other peers, on the same machine. */
const SLOWER_MAX = 5
/** Long enough to be distinguished from the effect of a loaded machine. */
const LONG_DRAIN_MS = 30_000
const MEBIBYTE = 1024 * 1024
const ORDER = JSON.stringify(anOrder())
const TENANT = 'slow'

type Received = { text: string; closedAfterMs: number | undefined }

/** Records the received bytes, and the time at which the connection ends. */
const record = (socket: Socket): Received => {
  const startedAtMs = performance.now()
  const received: Received = { text: '', closedAfterMs: undefined }
  const end = (): void => void (received.closedAfterMs ??= performance.now() - startedAtMs)
  socket.on('data', chunk => (received.text += String(chunk)))
  socket.once('end', end).once('close', end)
  return received
}

const sendSlowly = async (socket: Socket, bytes: string, received: Received): Promise<void> => {
  for (const byte of bytes) {
    if (received.closedAfterMs !== undefined) return
    socket.write(byte)
    await sleep(BYTE_EVERY_MS)
  }
}

describe('slow and misbehaving peers', () => {
  let service: TestService
  let variant: Variant
  let client: Client
  let store: EventStore
  let token: string
  let position: bigint
  const slow: { socket: Socket; received: Received }[] = []
  before(async () => {
    service = await sharedService()
    token = await service.token({ tenant: TENANT })
    client = clientOf(service.api, token)
    variant = await startVariant(service, { authenticate: async () => ({ ...caller, tenant: TENANT }) })
    store = openEventStore({ connectionString: service.addresses.event_store })
    position = await store.head()
    // These requests are refused after ten seconds; the other tests run meanwhile.
    for (const bytes of [
      '',
      head('POST /orders').slice(0, -4),
      'GET /orders HTTP/1.1\r\nHost: a\r\nX-'.padEnd(200, 'x'),
    ]) {
      const socket = await dial(service.api)
      const received = record(socket)
      slow.push({ socket, received })
      if (bytes.endsWith('x')) void sendSlowly(socket, bytes, received)
      else socket.write(bytes)
    }
  })
  after(async () => {
    for (const { socket } of slow) socket.destroy()
    await variant.close()
    await store.close()
  })

  const head = (line: string, ...fields: readonly string[]): string =>
    [
      `${line} HTTP/1.1`,
      `Host: ${new URL(service.api).host}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      ...fields,
      '',
      '',
    ].join('\r\n')

  const timesOfReads = async (): Promise<number[]> => {
    const took: number[] = []
    for (let calls = 0; calls < 50; calls++) {
      const requestedAtMs = performance.now()
      expect((await client.get('/orders?limit=1')).status).to.equal(200)
      took.push(performance.now() - requestedAtMs)
    }
    return took.toSorted((a, b) => a - b)
  }
  const medianOf = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)] ?? 0

  it(`${IDLE_SOCKETS} that only connect, or send half a request, delay no other request`, async () => {
    const half = head('GET /orders').slice(0, -2)
    await holdsInOneOf(async () => {
      const idle = await inParallel(200, Array.from({ length: IDLE_SOCKETS }), async (_, index) => {
        const socket = await dial(service.api)
        if (index % 2 === 0) socket.write(half)
        return socket
      })
      const beside = await timesOfReads()
      for (const socket of idle) socket.destroy()
      const promptMs = Math.max(PROMPT_MS, SLOWER_MAX * medianOf(await timesOfReads()))
      expect(medianOf(beside), `${beside.map(Math.round).join(' ')} ms`).to.be.below(promptMs)
    })
  })

  it('a body that arrives too slowly gets 408, and its later bytes are ignored', async () => {
    for (const [fields, body] of [
      [`Content-Length: ${ORDER.length}`, ORDER],
      ['Transfer-Encoding: chunked', `${ORDER.length.toString(16)}\r\n${ORDER}\r\n0\r\n\r\n`],
    ] as const) {
      const socket = await dial(variant.api)
      const received = record(socket)
      socket.write(head('POST /orders', fields) + body.slice(0, 10))
      await eventually(async () => received.text.includes('"request_timeout"'))
      socket.write(body.slice(10))
      await eventually(async () => received.closedAfterMs !== undefined)
      expect(received.text).to.match(/^HTTP\/1.1 408 .*\r\nretry-after: 1\r\n/is)
      expect(received.text.match(/HTTP\/1.1/g)).to.have.lengthOf(1)
      socket.destroy()
    }
    expect(await writtenSince(store, position, TENANT)).to.deep.equal([])
  })

  it('decompression bombs are refused and not decompressed', async () => {
    const zeros = Buffer.alloc(48 * MEBIBYTE)
    const bombs = {
      gzip: gzipSync(zeros),
      'x-gzip': gzipSync(zeros),
      deflate: deflateSync(zeros),
      br: brotliCompressSync(zeros),
    }
    const serviceMib = () => residentMib(service.addresses.pids['service'])
    const beforeMib = await serviceMib()
    const headers = { 'content-type': 'application/json' }
    const every = Object.entries(bombs).flatMap(bomb => Array.from({ length: 50 }, () => bomb))
    /** The duration of requests with these bytes, which are refused because of this header. */
    const refusedMs = async (headerOf: (coding: string) => Record<string, string>): Promise<number> => {
      const startedAtMs = performance.now()
      await inParallel(20, every, async ([coding, raw]) => {
        const answer = await client.request('POST', '/orders', { raw, headers: { ...headers, ...headerOf(coding) } })
        expect(answer.body, coding).to.include({ status: 415, code: 'unsupported_media_type' })
        expect(answer.headers.get('accept-post')).to.equal('application/json')
      })
      return performance.now() - startedAtMs
    }
    await holdsInOneOf(async () => {
      const plainMs = await refusedMs(() => ({ 'content-type': 'text/plain' }))
      const bombsMs = await refusedMs(coding => ({ 'content-encoding': coding }))
      // The decompression of all of them would take several times as long.
      expect(bombsMs, `${Math.round(plainMs)} ms without a content coding`).to.be.below(SLOWER_MAX * plainMs)
    })
    expect((await serviceMib()) - beforeMib).to.be.below(100)
    const large = gzipSync(Buffer.alloc(100 * MEBIBYTE))
    const tooLarge = await client.request('POST', '/orders', {
      raw: large,
      headers: { ...headers, 'content-encoding': 'gzip' },
    })
    expect(tooLarge.status).to.equal(413)
    expect(await writtenSince(store, position, TENANT)).to.deep.equal([])
  })

  it('clients that disconnect within their body cause no event', async () => {
    await inParallel(20, Array.from({ length: 100 }), async (_, index) => {
      const socket = await dial(service.api)
      const chunked = index % 2 === 0
      const body = chunked ? `${ORDER.length.toString(16)}\r\n${ORDER}\r\n` : ORDER.slice(0, -1)
      const fields = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${ORDER.length}`
      socket.write(head('POST /orders', fields) + body)
      await sleep(index % 10)
      if (index % 3 === 0) socket.resetAndDestroy()
      else socket.destroy()
    })
    expect((await client.get('/livez')).status).to.equal(200)
    await quietHead(store)
    expect(await writtenSince(store, position, TENANT)).to.deep.equal([])
  })

  /** A connection with three pipelined requests for event streams, of which the first has begun. */
  const pipelinedStreams = async (api: string): Promise<Socket> => {
    const socket = await dial(api)
    socket.resume().write(head('GET /events', 'Accept: text/event-stream').repeat(3))
    await eventually(async () => socket.bytesRead > 0)
    return socket
  }

  it('clients that disconnect before their responses hold no slot, for these or pipelined requests', async () => {
    // All of them together exceed the limit of requests in flight, if earlier ones are still counted.
    const manyAsked = head('GET /orders?limit=100').repeat(150)
    for (let left = 0; left < 10; left++) {
      const socket = await dial(variant.api)
      socket.write(manyAsked)
      await sleep(20)
      socket.resetAndDestroy()
    }
    const streaming = await pipelinedStreams(variant.api)
    streaming.destroy()
    const later = clientOf(variant.api)
    await eventually(async () => (await later.get('/orders?limit=1')).status === 200)
    const closing = await startVariant(service, { drainMs: LONG_DRAIN_MS })
    const disconnecting = await pipelinedStreams(closing.api)
    disconnecting.destroy()
    const requestedAtMs = performance.now()
    await closing.close()
    expect(performance.now() - requestedAtMs, 'the shutdown waited for a disconnected client').to.be.below(
      LONG_DRAIN_MS / 2,
    )
  })

  it('a client that keeps its connection open after a malformed request is disconnected', async () => {
    const socket = await dial(service.api)
    const received = record(socket)
    const closed = new Promise(resolve => socket.once('close', resolve))
    const talking = setInterval(() => socket.writable && socket.write('nonsense\r\n\r\n'), 50)
    const outcome = await Promise.race([closed.then(() => 'closed'), sleep(LATE_MAX_MS, 'still open')])
    clearInterval(talking)
    expect(outcome).to.equal('closed')
    expect(received.text.match(/HTTP\/1.1 400/g)).to.have.lengthOf(1)
  })

  it('a head that arrives too slowly gets 408 after about ten seconds', async () => {
    await Promise.all(
      slow.map(async ({ socket, received }, index) => {
        await eventually(async () => received.closedAfterMs !== undefined, HEADERS_DEADLINE_MS + LATE_MAX_MS)
        expect(received.closedAfterMs).to.be.above(HEADERS_DEADLINE_MS - 1_500)
        expect(received.text, `${index}`).to.match(
          /^HTTP\/1.1 408 .*\r\nretry-after: 1\r\n.*"code":"request_timeout"/is,
        )
        // Bytes after the error response are not processed.
        if (socket.writable) socket.write(`\r\nContent-Length: ${ORDER.length}\r\n\r\n${ORDER}`)
        await sleep(200)
        expect(received.text.match(/HTTP\/1.1/g)).to.have.lengthOf(1)
      }),
    )
    await quietHead(store)
    expect(await writtenSince(store, position, TENANT)).to.deep.equal([])
    const { answers } = await exchange(service.api, head('GET /orders?limit=1'), { answers: 1 })
    expect(answers[0]?.status).to.equal(200)
  })
})
