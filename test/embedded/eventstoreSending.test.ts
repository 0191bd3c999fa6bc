import { type ClientHttp2Session, type ClientHttp2Stream, type ServerHttp2Stream, connect } from 'node:http2'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import fc from 'fast-check'
import { eventMessage, linkMessage, streamName, uuidText } from '../../src/embedded/eventstore/protocol/messages.ts'
import {
  type BackpressureWriter,
  type ReadCall,
  openBackpressureWriter,
  outputOf,
  writesBatches,
} from '../../src/embedded/eventstore/protocol/backpressureWriter.ts'
import { outputOn } from '../../src/embedded/eventstore/protocol/readStream.ts'
import { streamDeleted } from '../../src/embedded/eventstore/protocol/status.ts'
import { interceptStreams } from '../../src/embedded/eventstore/protocol/streamInterception.ts'
import type { StoredRecord } from '../../src/embedded/eventstore/record.ts'
import { eventually } from '../support/eventually.ts'

const KIB = 1024
/** The node's limit per reader, one more batch, and the default window of 64 KiB of a connection. */
const AHEAD_BYTES_MAX = (256 + 64 + 64) * KIB

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.integer({ min: 0, max: 200 * KIB }).map(size => new Uint8Array(size).fill(size)),
)
const uint63 = fc.oneof(fc.bigInt(0n, 300n), fc.bigInt(0n, 2n ** 63n - 1n))
const record: fc.Arbitrary<StoredRecord> = fc
  .record({
    position: uint63,
    stream: fc.string({ unit: 'binary', minLength: 1 }),
    revision: uint63,
    id: fc.uuid(),
    type: fc.string({ unit: 'binary', minLength: 1 }),
    isJson: fc.boolean(),
    data: bytes,
    metadata: bytes,
    createdTicks: fc.bigInt(1n, 2n ** 62n),
  })
  .map(given => ({ ...given, data: Buffer.from(given.data), metadata: Buffer.from(given.metadata) }))

type Recorded = InstanceType<typeof streams.ReadResp.ReadEvent.RecordedEvent>

/** The record with its bytes as text, which is compared faster. */
const withText = (record: StoredRecord | null): object | null =>
  record && { ...record, data: record.data.toString('latin1'), metadata: record.metadata.toString('latin1') }

const asRecord = (event: Recorded | undefined): StoredRecord | null => {
  if (event === undefined) return null
  const described = event.getMetadataMap()
  return {
    position: BigInt(event.getPreparePosition()),
    stream: streamName(event.getStreamIdentifier()),
    revision: BigInt(event.getStreamRevision()),
    id: uuidText(event.getId()) ?? '',
    type: described.get('type') ?? '',
    isJson: described.get('content-type') === 'application/json',
    data: Buffer.from(event.getData_asU8()),
    metadata: Buffer.from(event.getCustomMetadata_asU8()),
    createdTicks: BigInt(described.get('created') ?? '0'),
  }
}

describe('messages of the embedded event store', () => {
  it("are valid by the protocol's definitions, of any size and order", () => {
    const form = fc.constantFrom('string' as const, 'structured' as const)
    fc.assert(
      fc.property(fc.array(fc.tuple(record, fc.option(record), form), { minLength: 1, maxLength: 12 }), all => {
        const encoded = all.map(([event, link, form]) =>
          link === null ? eventMessage(event, form) : linkMessage({ event, link }, form),
        )
        for (const [n, [event, link]] of all.entries()) {
          const answer = streams.ReadResp.deserializeBinary(encoded[n] ?? Buffer.alloc(0)).getEvent()
          expect(withText(asRecord(answer?.getEvent()))).to.deep.equal(withText(event))
          expect(withText(asRecord(answer?.getLink()))).to.deep.equal(withText(link))
          expect(answer?.getCommitPosition()).to.equal((link ?? event).position.toString())
        }
      }),
      { numRuns: 100 },
    )
  })

  for (const isIntercepted of [false, true])
    describe(`in batches, ${isIntercepted ? 'on a stream of HTTP/2' : 'by the gRPC library'}`, () => {
      const { path } = streamsGrpc.StreamsService.read
      let serve: (writer: BackpressureWriter) => void
      let server: Server
      let session: ClientHttp2Session
      let stopIntercepting: (() => void) | undefined

      beforeEach(async () => {
        server = new Server({ interceptors: [writesBatches(path)] })
        const responseSerialize = (bytes: Uint8Array): Buffer => Buffer.from(bytes)
        const unused = (): undefined => undefined
        server.addService(
          { ...streamsGrpc.StreamsService, read: { ...streamsGrpc.StreamsService.read, responseSerialize } },
          {
            read: (call: ReadCall) => serve(openBackpressureWriter(outputOf(call))),
            append: unused,
            batchAppend: unused,
            delete: unused,
            tombstone: unused,
          },
        )
        const port = await new Promise<number>((resolve, reject) =>
          server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
            error === null ? resolve(bound) : reject(error),
          ),
        )
        const intercept = (stream: ServerHttp2Stream): void => {
          stream.on('error', () => undefined).resume()
          serve(openBackpressureWriter(outputOn(stream)))
        }
        stopIntercepting = isIntercepted ? interceptStreams({ port, methods: new Map([[path, intercept]]) }) : undefined
        session = connect(`http://127.0.0.1:${port}`)
      })
      afterEach(() => {
        session.destroy()
        stopIntercepting?.()
        server.forceShutdown()
      })

      const framed = (message: ReadReq): Buffer => {
        const bytes = message.serializeBinary()
        const head = Buffer.alloc(5)
        head.writeUInt32BE(bytes.length, 1)
        return Buffer.concat([head, bytes])
      }
      const open = (): ClientHttp2Stream => {
        const call = session.request({
          ':method': 'POST',
          ':path': path,
          'content-type': 'application/grpc',
          te: 'trailers',
        })
        call.end(framed(new streams.ReadReq()))
        return call
      }
      const messagesIn = (sent: Buffer): string[] => {
        const messages: string[] = []
        for (let at = 0; at < sent.length; ) {
          const length = sent.readUInt32BE(at + 1)
          messages.push(sent.toString('utf8', at + 5, at + 5 + length))
          at += 5 + length
        }
        return messages
      }
      const responseOf = async (call: ClientHttp2Stream) => {
        const chunks: Buffer[] = []
        let status: unknown
        call.on('trailers', trailers => (status = trailers['grpc-status']))
        for await (const chunk of call) chunks.push(chunk as Buffer)
        return { chunks: chunks.length, messages: messagesIn(Buffer.concat(chunks)), status }
      }
      const text = (n: number): string => `event ${n} `.padEnd(500, '.')

      it('share frames, and keep their order', async () => {
        const count = 2000
        serve = async writer => {
          for (let n = 0; n < count; n += 1) await writer.send(Buffer.from(text(n)))
          writer.end(undefined)
        }
        const { chunks, messages, status } = await responseOf(open())
        expect(messages).to.deep.equal(Array.from({ length: count }, (_, n) => text(n)))
        expect(status).to.equal('0')
        expect(chunks).to.be.lessThan(count / 10)
      })

      it('are sent at once if nothing follows, and before a failure', async () => {
        const received = Promise.withResolvers<void>()
        serve = async writer => {
          void writer.send(Buffer.from('alone'))
          await received.promise
          void writer.send(Buffer.from('last'))
          writer.end(streamDeleted('s-1'))
        }
        const call = open()
        call.once('data', () => received.resolve())
        const { messages, status } = await responseOf(call)
        expect(messages).to.deep.equal(['alone', 'last'])
        expect(status).to.equal('9')
      })

      it('wait for a reader that does not read, and not for one that has left', async () => {
        let sentBytes = 0
        let waits = 0
        let hasEnded = false
        serve = async writer => {
          while (!writer.gone.aborted) {
            const drained = writer.send(Buffer.alloc(KIB))
            sentBytes += KIB
            if (drained === undefined) continue
            waits += 1
            await drained
          }
          hasEnded = true
        }
        const call = open()
        call.on('error', () => undefined)
        await eventually(() => waits > 0)
        expect(sentBytes).to.be.at.most(AHEAD_BYTES_MAX)
        call.resume()
        await eventually(() => sentBytes > 2 * AHEAD_BYTES_MAX)
        call.destroy()
        await eventually(() => hasEnded)
      })
    })
})
