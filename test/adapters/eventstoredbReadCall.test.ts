import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
  connect,
  createServer,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import fc from 'fast-check'
import { type Answer, answerOf } from '../../src/adapters/eventstoredb/answers.ts'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { ReadCall } from '../../src/adapters/eventstoredb/readCall.ts'
import { Unavailable } from '../../src/ports.ts'
import { eventually } from '../support/eventually.ts'
import { rejectionOf } from '../support/rejection.ts'

type Respond = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

const HEADERS = { ':method': 'POST', ':path': '/event_store.client.streams.Streams/Read' }
const OK = { 'grpc-status': '0' }
const UNAVAILABLE = 14
const INTERNAL = 13
const POLLS_WITHOUT_WRITE = 10

const checkpoint = (position: bigint): Buffer => {
  const message = new streams.ReadResp().setCheckpoint(
    new streams.ReadResp.Checkpoint().setCommitPosition(position.toString()).setPreparePosition('0'),
  )
  const bytes = Buffer.from(message.serializeBinary())
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([prefix, bytes])
}

/** Sends the chunks, each in a frame of its own, then the trailers. */
const sending =
  (chunks: readonly Buffer[], trailers: Record<string, string> = OK): Respond =>
  stream => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    for (const chunk of chunks) stream.write(chunk)
    stream.end()
  }

/** The answers of a call, and the code and the text of the error that it ended with. */
const outcomeOf = async (call: AsyncIterable<unknown>): Promise<{ answers: Answer[]; error?: unknown[] }> => {
  const answers: Answer[] = []
  try {
    for await (const some of call) answers.push(...(some as Answer[]))
    return { answers }
  } catch (error) {
    const { code, details } = error as { code: unknown; details: unknown }
    return { answers, error: [code, details] }
  }
}

const positionsOf = (answers: readonly Answer[]): bigint[] =>
  answers.map(answer => (answer.kind === 'checkpoint' ? answer.position : -1n))

describe('EventStoreDB adapter: reads on a session', () => {
  const server = createServer()
  const seen: IncomingHttpHeaders[] = []
  const resets: number[] = []
  let respond: Respond = sending([])
  let port = 0
  let http2: ClientHttp2Session

  const call = (): ReadCall => new ReadCall({ http2, headers: HEADERS }, Buffer.from('request'), answerOf)

  before(async () => {
    server.on('stream', (stream, headers) => {
      seen.push(headers)
      stream.on('error', () => undefined)
      stream.on('close', () => resets.push(stream.rstCode))
      stream.resume()
      respond(stream, headers)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
    http2 = connect(`http://127.0.0.1:${port}`)
  })
  after(() => {
    http2.close()
    server.close()
  })

  describe('a call', () => {
    it('yields the same answers for every split of the bytes into frames', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.bigInt(0n, 2n ** 64n - 1n), { maxLength: 40 }),
          fc.array(fc.nat(400), { maxLength: 20 }),
          async (positions, cuts) => {
            const bytes = Buffer.concat(positions.map(checkpoint))
            const at = [0, ...cuts.filter(cut => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
            respond = sending(at.slice(1).map((end, index) => bytes.subarray(at[index], end)))
            const { answers, error } = await outcomeOf(call())
            expect(error).to.equal(undefined)
            expect(positionsOf(answers)).to.deep.equal(positions)
          },
        ),
        { numRuns: 200 },
      )
    })

    it('sends the request as one message that is not compressed', async () => {
      let sent = Buffer.alloc(0)
      respond = stream => {
        stream.on('data', (chunk: Buffer) => (sent = Buffer.concat([sent, chunk])))
        stream.on('end', () => sending([])(stream, {}))
      }
      expect(await outcomeOf(call())).to.deep.equal({ answers: [] })
      expect(sent).to.deep.equal(Buffer.from('\0\0\0\0\x07request'))
    })

    it('fails with the status and the message of the trailers, after the answers before them', async () => {
      respond = sending([checkpoint(7n)], { 'grpc-status': '7', 'grpc-message': 'no%20right' })
      const { answers, error } = await outcomeOf(call())
      expect(positionsOf(answers)).to.deep.equal([7n])
      expect(error).to.deep.equal([7, 'no right'])
    })

    it('keeps a message unchanged that is not percent-encoded', async () => {
      respond = sending([], { 'grpc-status': '8', 'grpc-message': 'disk 100% full' })
      expect(await outcomeOf(call())).to.deep.equal({ answers: [], error: [8, 'disk 100% full'] })
    })

    it('fails with the status of a response that is only headers', async () => {
      respond = stream =>
        stream.respond({ ':status': 200, 'grpc-status': '16', 'grpc-message': 'unknown' }, { endStream: true })
      expect(await outcomeOf(call())).to.deep.equal({ answers: [], error: [16, 'unknown'] })
    })

    it('is unavailable if it ends without a status', async () => {
      respond = stream => {
        stream.respond({ ':status': 200 })
        stream.end(checkpoint(1n))
      }
      expect((await outcomeOf(call())).error?.[0]).to.equal(UNAVAILABLE)
    })

    it('is unavailable if it is reset, or if its connection is lost', async () => {
      respond = stream => {
        stream.respond({ ':status': 200 })
        stream.write(checkpoint(1n), () => stream.close(2))
      }
      expect((await outcomeOf(call())).error?.[0]).to.equal(UNAVAILABLE)
      respond = stream => {
        stream.respond({ ':status': 200 })
        stream.write(checkpoint(1n), () => stream.session?.destroy())
      }
      expect((await outcomeOf(call())).error?.[0]).to.equal(UNAVAILABLE)
      http2 = connect(`http://127.0.0.1:${port}`)
    })

    it('fails if its last message is incomplete, compressed or malformed', async () => {
      const whole = checkpoint(2n ** 40n)
      for (let length = 1; length < whole.length; length += 1) {
        respond = sending([checkpoint(1n), whole.subarray(0, length)])
        expect((await outcomeOf(call())).error?.[0], `${length} bytes`).to.equal(INTERNAL)
      }
      respond = sending([Buffer.from([1, ...whole.subarray(1)])])
      expect((await outcomeOf(call())).error?.[0]).to.equal(INTERNAL)
      respond = sending([Buffer.from([0, 0, 0, 0, 2, 0x0b, 0x0c])])
      expect((await outcomeOf(call())).error?.[0]).to.equal(INTERNAL)
    })

    it('is reset if its reader stops early, and is not reset if it has ended', async () => {
      resets.length = 0
      respond = stream => {
        stream.respond({ ':status': 200 })
        stream.write(checkpoint(1n))
      }
      for await (const _ of call()) break
      await eventually(() => resets.length === 1)
      respond = sending([checkpoint(1n)])
      await outcomeOf(call())
      await eventually(() => resets.length === 2)
      expect(resets).to.deep.equal([8, 0])
    })

    it('buffers a bounded number of bytes while its answers are not read', async () => {
      const many = Buffer.concat(Array.from({ length: 10_000 }, (_, n) => checkpoint(BigInt(n) + 2n ** 40n)))
      let written = 0
      respond = stream => {
        stream.respond({ ':status': 200 })
        const write = (): void => {
          if (stream.destroyed) return
          written += 1
          if (stream.write(many)) write()
          else stream.once('drain', write)
        }
        write()
      }
      const unread = call()
      await once(unread, 'readable')
      // The store is blocked when it has written nothing during many polls.
      let [before, pollsWithoutWrite] = [-1, 0]
      await eventually(() => {
        pollsWithoutWrite = written === before ? pollsWithoutWrite + 1 : 0
        before = written
        return pollsWithoutWrite === POLLS_WITHOUT_WRITE
      })
      unread.destroy()
      expect(written * many.length).to.be.lessThan(4 * 1024 * 1024)
    })
  })

  describe('a store', () => {
    it('reads on one connection, and on another one after that is lost', async () => {
      let connections = 0
      server.on('session', () => void (connections += 1))
      respond = sending([])
      const store = openEventStore({ connectionString: `esdb://127.0.0.1:${port}?tls=false` })
      const read = async (): Promise<void> => {
        for await (const _ of store.readStream('s-1')) expect.fail('An empty stream has no events.')
      }
      try {
        for (let n = 0; n < 3; n += 1) await read()
        expect(connections).to.equal(1)
        const gone = new Promise<void>(resolve => {
          respond = stream => {
            stream.session?.once('close', resolve)
            stream.session?.destroy()
          }
        })
        expect(await rejectionOf(read())).to.be.instanceOf(Unavailable)
        await gone
        respond = sending([])
        await read()
        await read()
        expect(connections).to.equal(2)
      } finally {
        await store.close()
      }
    })
  })
})
