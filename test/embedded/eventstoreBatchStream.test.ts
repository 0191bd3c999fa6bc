import { once } from 'node:events'
import { randomUUID } from 'node:crypto'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  connect,
  constants,
} from 'node:http2'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import fc from 'fast-check'
import timestamp from 'google-protobuf/google/protobuf/timestamp_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import { BATCH_APPEND, batchAppend } from '../../src/embedded/eventstore/protocol/batchAppend.ts'
import { readBatchRequest } from '../../src/embedded/eventstore/protocol/batchRequest.ts'
import { serveBatchAppend } from '../../src/embedded/eventstore/protocol/batchStream.ts'
import { identifierOf, uuidMessage } from '../../src/embedded/eventstore/protocol/messages.ts'
import { interceptStreams } from '../../src/embedded/eventstore/protocol/streamInterception.ts'
import { openStreams } from '../../src/embedded/eventstore/streams.ts'
import { openTail } from '../../src/embedded/eventstore/tail.ts'
import type { WriteRequest, Written } from '../../src/embedded/eventstore/writeRequest.ts'
import { MessageSplitter, prefixed } from '../../src/grpc/framing.ts'
import { eventually } from '../support/eventually.ts'

type Request = InstanceType<typeof streams.BatchAppendReq>
type Response = InstanceType<typeof streams.BatchAppendResp>

const MESSAGE_BYTES_MAX = 1024 * 1024
const UNANSWERED_MAX = 2000
const INTERNAL = '13'

const text = fc.string({ unit: 'binary', maxLength: 40 }).map(value => Buffer.from(value).toString('utf8'))
const uint64 = fc.oneof(fc.bigInt(0n, 300n), fc.bigInt(0n, 2n ** 64n - 1n))
const form = fc.constantFrom('string' as const, 'structured' as const)
const proposed = fc.record({
  id: fc.uuid(),
  form,
  type: fc.option(text),
  contentType: fc.option(fc.constantFrom('application/json', 'application/octet-stream')),
  data: fc.uint8Array({ maxLength: 300 }),
  metadata: fc.uint8Array({ maxLength: 300 }),
})

type Proposed = typeof proposed extends fc.Arbitrary<infer T> ? T : never

const messageOf = (event: Proposed) => {
  const message = new streams.BatchAppendReq.ProposedMessage()
    .setId(uuidMessage(event.id, event.form))
    .setData(event.data)
    .setCustomMetadata(event.metadata)
  if (event.type !== null) message.getMetadataMap().set('type', event.type)
  if (event.contentType !== null) message.getMetadataMap().set('content-type', event.contentType)
  return message
}

const requestTo = (stream: string, id = randomUUID()): Request => {
  const options = new streams.BatchAppendReq.Options()
    .setStreamIdentifier(identifierOf(stream))
    .setNoStream(new empty.Empty())
  const event = { id: randomUUID(), form: 'string', type: 'Made', contentType: 'application/json' } as const
  return new streams.BatchAppendReq()
    .setCorrelationId(uuidMessage(id, 'structured'))
    .setOptions(options)
    .setProposedMessagesList([messageOf({ ...event, data: Buffer.from('{}'), metadata: Buffer.alloc(0) })])
    .setIsFinal(true)
}

const framed = (request: Request): Buffer => prefixed(request.serializeBinary())

const PATH = '/event_store.client.streams.Streams/BatchAppend'

describe('embedded event store: BatchAppend on a stream of HTTP/2', () => {
  describe('the decoding of a request', () => {
    it('is that of the client', () => {
      fc.assert(
        fc.property(
          fc.record({
            id: fc.option(fc.uuid()),
            form,
            stream: fc.option(text),
            expected: fc.oneof(uint64, fc.constantFrom('no_stream', 'any', 'stream_exists')),
            deadlineMs: fc.option(fc.integer({ min: -10_000_000_000_000, max: 10_000_000_000_000 })),
            events: fc.array(proposed, { maxLength: 3 }),
            isFinal: fc.boolean(),
          }),
          asked => {
            const options = new streams.BatchAppendReq.Options()
            if (typeof asked.expected === 'bigint') options.setStreamPosition(asked.expected.toString())
            else if (asked.expected === 'no_stream') options.setNoStream(new empty.Empty())
            else if (asked.expected === 'any') options.setAny(new empty.Empty())
            else options.setStreamExists(new empty.Empty())
            if (asked.deadlineMs !== null) options.setDeadline(timestamp.Timestamp.fromDate(new Date(asked.deadlineMs)))
            if (asked.stream !== null) options.setStreamIdentifier(identifierOf(asked.stream))
            const message = new streams.BatchAppendReq()
              .setProposedMessagesList(asked.events.map(messageOf))
              .setIsFinal(asked.isFinal)
            const correlationId = asked.id === null ? undefined : uuidMessage(asked.id, asked.form)
            if (correlationId !== undefined) message.setCorrelationId(correlationId)
            if (asked.stream !== null) message.setOptions(options)
            expect(readBatchRequest(Buffer.from(message.serializeBinary()))).to.deep.equal({
              correlationId: correlationId && Buffer.from(correlationId.serializeBinary()),
              target:
                asked.stream === null
                  ? undefined
                  : {
                      stream: asked.stream,
                      expected: asked.expected,
                      deadlineMs: asked.deadlineMs ?? Number.POSITIVE_INFINITY,
                    },
              events: asked.events.map(event => ({
                id: event.id,
                ...(event.type !== null && { type: event.type }),
                ...(event.contentType !== null && { isJson: event.contentType === 'application/json' }),
                data: Buffer.from(event.data),
                metadata: Buffer.from(event.metadata),
              })),
              isFinal: asked.isFinal,
            })
          },
        ),
        { numRuns: 1000 },
      )
    })
  })

  describe('a call', () => {
    const written = new Map<string, Promise<Written>>()
    let requests: WriteRequest[] = []
    let server: Server
    let stopIntercepting: () => void
    let http2: ClientHttp2Session
    let port = 0

    before(async () => {
      const write = (request: WriteRequest): Promise<Written> => {
        requests.push(request)
        return written.get(request.stream) ?? Promise.resolve({ kind: 'written', revision: 0n, position: 733n })
      }
      const writer = { tail: openTail(), streams: openStreams(), write, close: () => Promise.resolve() }
      server = new Server()
      server.addService({ batchAppend: BATCH_APPEND }, { batchAppend: batchAppend(writer) })
      port = await new Promise<number>(resolve =>
        server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_, bound) => resolve(bound)),
      )
      const serve = serveBatchAppend(writer, MESSAGE_BYTES_MAX)
      stopIntercepting = interceptStreams({ port, methods: new Map([[PATH, serve]]) })
      http2 = connect(`http://127.0.0.1:${port}`)
    })
    beforeEach(() => {
      requests = []
      written.clear()
    })
    after(() => {
      http2.destroy()
      stopIntercepting()
      server.forceShutdown()
    })

    type Opened = {
      readonly stream: ClientHttp2Stream
      readonly chunks: Response[][]
      readonly headers: Promise<IncomingHttpHeaders>
      readonly trailers: Promise<IncomingHttpHeaders>
    }

    /** Collects the responses of each chunk that comes. */
    const open = (more: Record<string, string> = {}): Opened => {
      const stream = http2.request({
        ':method': 'POST',
        ':path': PATH,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...more,
      })
      const splitter = new MessageSplitter(MESSAGE_BYTES_MAX)
      const chunks: Response[][] = []
      stream.on('data', (chunk: Buffer) =>
        chunks.push(
          splitter.messagesWith(chunk).map(bytes => streams.BatchAppendResp.deserializeBinary(new Uint8Array(bytes))),
        ),
      )
      const headers = once(stream, 'response').then(([received]) => received as IncomingHttpHeaders)
      const trailers = once(stream, 'trailers').then(([received]) => received as IncomingHttpHeaders)
      return { stream, chunks, headers, trailers }
    }

    const revisionsOf = (chunks: readonly (readonly Response[])[]): (string | undefined)[] =>
      chunks.flat().map(response => response.getSuccess()?.getCurrentRevision())

    it('has the headers of gRPC, and ends with status 0 after all answers when the client ends', async () => {
      const later = Promise.withResolvers<Written>()
      written.set('s-later', later.promise)
      const { stream, chunks, headers, trailers } = open()
      stream.end(Buffer.concat([framed(requestTo('s-1')), framed(requestTo('s-later'))]))
      expect(await headers).to.include({ ':status': 200, 'content-type': 'application/grpc+proto' })
      await eventually(() => chunks.length === 1)
      later.resolve({ kind: 'written', revision: 1n, position: 838n })
      expect(await trailers).to.include({ 'grpc-status': '0' })
      expect(revisionsOf(chunks)).to.deep.equal(['0', '1'])
    })

    it('takes the same requests however their bytes are split', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.nat(2000), { maxLength: 10 }),
          fc.integer({ min: 1, max: 8 }),
          async (cuts, count) => {
            requests = []
            const names = Array.from({ length: count }, (_, n) => `s-${n}`)
            const bytes = Buffer.concat(names.map(name => framed(requestTo(name))))
            const at = [0, ...cuts.filter(cut => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
            const { stream, trailers } = open()
            for (const [n, end] of at.slice(1).entries()) stream.write(bytes.subarray(at[n], end))
            stream.end()
            expect(await trailers).to.include({ 'grpc-status': '0' })
            expect(requests.map(({ stream: name }) => name)).to.deep.equal(names)
          },
        ),
        { numRuns: 50 },
      )
    })

    it('sends the responses of one commit in one write, with the ids in the form of the client', async () => {
      const commit = Promise.withResolvers<Written>()
      const names = Array.from({ length: 20 }, (_, n) => `s-${n}`)
      for (const name of names) written.set(name, commit.promise)
      const ids = names.map(() => randomUUID())
      const { stream, chunks } = open()
      stream.write(Buffer.concat(names.map((name, n) => framed(requestTo(name, ids[n])))))
      await eventually(() => requests.length === names.length)
      commit.resolve({ kind: 'written', revision: 2n ** 60n, position: 2n ** 61n })
      await eventually(() => chunks.length > 0)
      expect(chunks).to.have.length(1)
      const expected = names.map((name, n) => {
        const at = new shared.AllStreamPosition()
          .setCommitPosition((2n ** 61n).toString())
          .setPreparePosition((2n ** 61n).toString())
        const success = new streams.BatchAppendResp.Success().setCurrentRevision((2n ** 60n).toString()).setPosition(at)
        return new streams.BatchAppendResp()
          .setCorrelationId(uuidMessage(ids[n] ?? '', 'structured'))
          .setStreamIdentifier(identifierOf(name))
          .setSuccess(success)
          .toObject()
      })
      expect(chunks[0]?.map(response => response.toObject())).to.deep.equal(expected)
      stream.end()
    })

    it('ends with INTERNAL at a message that is incomplete, compressed, too large or no message', async () => {
      const whole = framed(requestTo('s-1'))
      for (const bytes of [
        whole.subarray(0, whole.length - 1),
        Buffer.from([1, ...whole.subarray(1)]),
        Buffer.from([0, 0xff, 0, 0, 0, 0]),
        Buffer.from([0, 0, 0, 0, 2, 0x0b, 0x0c]),
      ]) {
        const { stream, trailers } = open()
        stream.end(bytes)
        expect((await trailers)['grpc-status'], bytes.toString('hex')).to.equal(INTERNAL)
      }
      expect(requests).to.deep.equal([])
    })

    it('leaves the messages of a client with 2,000 unanswered appends in the socket, and continues', async () => {
      const held = Promise.withResolvers<Written>()
      written.set('s-held', held.promise)
      const { stream, chunks, trailers } = open()
      const one = framed(requestTo('s-held'))
      for (let n = 0; n < UNANSWERED_MAX; n += 1) stream.write(one)
      await eventually(() => requests.length === UNANSWERED_MAX)
      const padding = Array.from({ length: 5_000 }, () => framed(requestTo('s-1')))
      for (const bytes of padding) stream.write(bytes)
      stream.end()
      // Requests that arrived in the same chunk are accepted still.
      await eventually(() => stream.writableLength > 0)
      const acceptedBefore = requests.length
      expect(acceptedBefore).to.be.lessThan(UNANSWERED_MAX + padding.length)
      held.resolve({ kind: 'written', revision: 0n, position: 733n })
      expect(await trailers).to.include({ 'grpc-status': '0' })
      expect(revisionsOf(chunks)).to.have.length(UNANSWERED_MAX + padding.length)
    })

    it('that is reset or loses its connection loses only its answers', async () => {
      const held = Promise.withResolvers<Written>()
      written.set('s-held', held.promise)
      const { stream } = open()
      stream.on('error', () => undefined)
      stream.write(framed(requestTo('s-held')))
      await eventually(() => requests.length === 1)
      stream.close(constants.NGHTTP2_CANCEL)
      const next = open()
      next.stream.write(framed(requestTo('s-1')))
      await eventually(() => next.chunks.length === 1)
      held.resolve({ kind: 'written', revision: 0n, position: 733n })
      next.stream.end(framed(requestTo('s-2')))
      expect(await next.trailers).to.include({ 'grpc-status': '0' })
    })

    it('with a deadline of gRPC is served by the library, which keeps it', async () => {
      written.set('s-held', new Promise(() => undefined))
      const { stream, chunks, trailers } = open({ 'grpc-timeout': '300m' })
      stream.write(Buffer.concat([framed(requestTo('s-1')), framed(requestTo('s-held'))]))
      expect(await trailers).to.include({ 'grpc-status': '4' })
      expect(revisionsOf(chunks)).to.deep.equal(['0'])
    })

    it('of another method is unimplemented, and of another content type refused', async () => {
      const { stream, headers } = open({ ':path': '/event_store.client.streams.Streams/Nothing' })
      stream.end()
      expect(await headers).to.include({ 'grpc-status': '12' })
      const page = open({ 'content-type': 'text/html' })
      page.stream.end()
      expect(await page.headers).to.include({ ':status': 415 })
    })
  })
})
