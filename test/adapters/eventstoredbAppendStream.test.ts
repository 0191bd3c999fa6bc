import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  connect,
  constants,
  createServer,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { randomUUID } from 'node:crypto'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import fc from 'fast-check'
import { AppendCall, type Sending } from '../../src/adapters/eventstoredb/appendCall.ts'
import type { Append, AppendAnswer } from '../../src/adapters/eventstoredb/appendMessages.ts'
import { AppendStream } from '../../src/adapters/eventstoredb/appendStream.ts'
import { CallEnded } from '../../src/adapters/eventstoredb/errors.ts'
import { uuidMessage } from '../../src/embedded/eventstore/protocol/messages.ts'
import { MessageSplitter, prefixed } from '../../src/grpc/framing.ts'
import type { Appended, NewEvent } from '../../src/ports.ts'
import { event } from '../contracts/eventStoreFixtures.ts'
import { eventually } from '../support/eventually.ts'
import { rejectionOf } from '../support/rejection.ts'

type Respond = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

const MESSAGE_BYTES_MAX = 17 * 1024 * 1024
const OK = { 'grpc-status': '0' }
const GRPC = { ':status': 200, 'content-type': 'application/grpc' }
const HEADERS = {
  ':method': 'POST',
  'content-type': 'application/grpc',
  te: 'trailers',
  'connection-name': 'test',
  authorization: 'Basic dTpw',
}
const [CANCELLED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE] = [1, 8, 12, 13, 14]
const KIB = 1024

const answer = (id: string, revision: bigint): Buffer => {
  const success = new streams.BatchAppendResp.Success()
    .setCurrentRevision(revision.toString())
    .setPosition(new shared.AllStreamPosition().setCommitPosition('733').setPreparePosition('733'))
  const message = new streams.BatchAppendResp().setCorrelationId(uuidMessage(id, 'structured')).setSuccess(success)
  return prefixed(message.serializeBinary())
}

/** The outcome of a call: its answers, and the code and the text of the error that it ended with. */
const outcomeOf = async (call: AsyncIterable<unknown>): Promise<{ answers: AppendAnswer[]; error?: unknown }> => {
  const answers: AppendAnswer[] = []
  try {
    for await (const some of call) answers.push(...(some as AppendAnswer[]))
    return { answers }
  } catch (error) {
    return { answers, error }
  }
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code

const appendOf = (stream: string, events: readonly NewEvent[] = [event()]): Append => ({
  stream,
  events,
  expected: 'no_stream',
})
const notGivenUp = (): Sending => ({ isAbandoned: false, sent: false })

describe('EventStoreDB adapter: appends on a session', () => {
  const server = createServer()
  const seen: IncomingHttpHeaders[] = []
  const resets: number[] = []
  const sessions = new Set<ServerHttp2Session>()
  let respond: Respond
  let port = 0
  let http2: ClientHttp2Session

  const open = (): AppendStream => new AppendStream({ http2, headers: HEADERS })

  before(async () => {
    server.on('session', session => sessions.add(session))
    server.on('stream', (stream, headers) => {
      seen.push(headers)
      stream.on('error', () => undefined)
      stream.on('close', () => resets.push(stream.rstCode))
      respond(stream, headers)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  })
  beforeEach(async () => {
    http2 = connect(`http://127.0.0.1:${port}`)
    http2.on('error', () => undefined)
    await once(http2, 'connect')
    seen.length = 0
    resets.length = 0
  })
  afterEach(() => http2.destroy())
  after(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })

  /** Responds with the chunks, each in a frame of its own, then the trailers. */
  const sending =
    (chunks: readonly Buffer[], trailers: Record<string, string> = OK): Respond =>
    stream => {
      stream.resume()
      stream.respond(GRPC, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers(trailers))
      for (const chunk of chunks) stream.write(chunk)
      stream.end()
    }

  describe('a call', () => {
    it('has the headers of the connection, and accepts no compressed messages', async () => {
      respond = sending([])
      expect(await outcomeOf(open())).to.deep.equal({ answers: [] })
      expect(seen[0]).to.include({
        ...HEADERS,
        ':path': '/event_store.client.streams.Streams/BatchAppend',
        'grpc-accept-encoding': 'identity',
      })
    })

    it('gives the same answers however the bytes are split into frames', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.bigInt(0n, 2n ** 64n - 1n), { maxLength: 30 }),
          fc.array(fc.nat(600), { maxLength: 20 }),
          async (revisions, cuts) => {
            const ids = revisions.map(() => randomUUID())
            const bytes = Buffer.concat(revisions.map((revision, n) => answer(ids[n] ?? '', revision)))
            const at = [0, ...cuts.filter(cut => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
            respond = sending(at.slice(1).map((end, index) => bytes.subarray(at[index], end)))
            const { answers, error } = await outcomeOf(open())
            expect(error).to.equal(undefined)
            expect(answers).to.deep.equal(
              revisions.map((revision, n) => ({ id: ids[n], outcome: { ok: true, revision, position: 733n } })),
            )
          },
        ),
        { numRuns: 100 },
      )
    })

    it('fails with the status, the message and the trailers of the store, after the answers before them', async () => {
      const trailers = { 'grpc-status': '5', 'grpc-message': 'not%20here', exception: 'not-leader' }
      respond = sending([answer(randomUUID(), 7n)], trailers)
      const { answers, error } = await outcomeOf(open())
      expect(answers).to.have.length(1)
      expect(error).to.include({ code: 5, details: 'not here' })
      const { metadata } = error as { metadata: { getMap(): Record<string, unknown> } }
      expect(metadata.getMap()).to.include({ exception: 'not-leader' })
    })

    it('fails with the status of a response that is only headers', async () => {
      respond = stream =>
        stream.respond({ ':status': 200, 'grpc-status': '16', 'grpc-message': 'who' }, { endStream: true })
      expect((await outcomeOf(open())).error).to.include({ code: 16, details: 'who' })
    })

    for (const [http, code] of [
      [401, 16],
      [403, 7],
      [404, UNIMPLEMENTED],
      [503, UNAVAILABLE],
    ] as const)
      it(`fails with the status for HTTP ${http} if no store responds`, async () => {
        respond = stream => {
          stream.respond({ ':status': http, 'content-type': 'text/html' })
          stream.end('<html>')
        }
        expect(codeOf((await outcomeOf(open())).error)).to.equal(code)
      })

    it('fails if the response is a page', async () => {
      respond = stream => {
        stream.respond({ ':status': 200, 'content-type': 'text/html' })
        stream.end('<html>')
      }
      expect(codeOf((await outcomeOf(open())).error)).to.equal(INTERNAL)
    })

    for (const [name, rstCode, code] of [
      ['CANCEL', constants.NGHTTP2_CANCEL, CANCELLED],
      ['ENHANCE_YOUR_CALM', constants.NGHTTP2_ENHANCE_YOUR_CALM, RESOURCE_EXHAUSTED],
      ['INTERNAL_ERROR', constants.NGHTTP2_INTERNAL_ERROR, INTERNAL],
      ['NO_ERROR', constants.NGHTTP2_NO_ERROR, UNAVAILABLE],
    ] as const)
      it(`that is reset with ${name} fails as the gRPC library says`, async () => {
        respond = stream => {
          stream.respond(GRPC)
          stream.write(answer(randomUUID(), 1n), () => stream.close(rstCode))
        }
        expect(codeOf((await outcomeOf(open())).error)).to.equal(code)
      })

    it('that the store refuses has had no effect', async () => {
      respond = stream => stream.close(constants.NGHTTP2_REFUSED_STREAM)
      expect((await outcomeOf(open())).error)
        .to.be.instanceOf(CallEnded)
        .and.to.include({ effect: 'none' })
    })

    it('is unavailable if its connection is lost, or closed for an error', async () => {
      for (const end of [
        (session: ServerHttp2Session) => session.destroy(),
        (session: ServerHttp2Session) => session.goaway(constants.NGHTTP2_INTERNAL_ERROR),
      ]) {
        respond = stream => {
          stream.respond(GRPC)
          stream.write(answer(randomUUID(), 1n), () => stream.session && end(stream.session as ServerHttp2Session))
        }
        expect(codeOf((await outcomeOf(open())).error)).to.equal(UNAVAILABLE)
        http2 = connect(`http://127.0.0.1:${port}`)
        http2.on('error', () => undefined)
      }
    })

    it('fails if its last message is incomplete, compressed, too large or no message', async () => {
      const whole = answer(randomUUID(), 2n ** 40n)
      for (const chunk of [
        whole.subarray(0, 3),
        whole.subarray(0, whole.length - 1),
        Buffer.from([1, ...whole.subarray(1)]),
        Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 0]),
        Buffer.from([0, 0, 0, 0, 2, 0x0b, 0x0c]),
      ]) {
        respond = sending([answer(randomUUID(), 1n), chunk])
        expect(codeOf((await outcomeOf(open())).error), chunk.toString('hex')).to.equal(INTERNAL)
      }
    })

    it('ends also if its trailers come after the end of its data', async () => {
      const request = Object.assign(new PassThrough({ autoDestroy: false }), { close: () => undefined })
      const opened: ClientHttp2Session = Object.assign(Object.create(http2), { request: () => request })
      const outcome = outcomeOf(new AppendStream({ http2: opened, headers: HEADERS }))
      request.emit('response', GRPC)
      request.write(answer(randomUUID(), 7n))
      request.end()
      await once(request, 'end')
      request.emit('trailers', OK)
      request.emit('close')
      const { answers, error } = await outcome
      expect(error).to.equal(undefined)
      expect(answers).to.have.length(1)
    })

    it('is reset if it is destroyed, and is not reset if it has ended', async () => {
      respond = stream => {
        stream.resume()
        stream.respond(GRPC)
      }
      const call = open()
      await eventually(() => seen.length === 1)
      call.destroy()
      await eventually(() => resets.length === 1)
      respond = sending([])
      const ended = open()
      ended.resume().on('end', () => ended.end())
      await eventually(() => resets.length === 2)
      expect(resets).to.deep.equal([constants.NGHTTP2_CANCEL, constants.NGHTTP2_NO_ERROR])
    })

    it('is not open any more once the store closes the connection, and still gives its answers', async () => {
      let stream: ServerHttp2Stream | undefined
      respond = opened => {
        stream = opened
        opened.resume()
        opened.respond(GRPC, { waitForTrailers: true })
        opened.on('wantTrailers', () => opened.sendTrailers(OK))
      }
      const call = open()
      await eventually(() => stream !== undefined)
      expect(call.isOpen()).to.equal(true)
      stream?.session?.close()
      await eventually(() => !call.isOpen())
      stream?.end(answer(randomUUID(), 1n))
      const { answers, error } = await outcomeOf(call)
      expect([answers.length, error]).to.deep.equal([1, undefined])
    })
  })

  describe('its appends', () => {
    type Received = { readonly id: string; readonly stream: string }

    /** Reports the appends of each chunk that the store receives. */
    const receiving =
      (receive: (received: readonly Received[], stream: ServerHttp2Stream) => void): Respond =>
      stream => {
        stream.respond(GRPC, { waitForTrailers: true })
        stream.on('wantTrailers', () => stream.sendTrailers(OK))
        const splitter = new MessageSplitter(MESSAGE_BYTES_MAX)
        stream.on('data', (chunk: Buffer) => {
          const requests = splitter
            .messagesWith(chunk)
            .map(bytes => streams.BatchAppendReq.deserializeBinary(new Uint8Array(bytes)))
          const nameOf = (request: (typeof requests)[number]): string =>
            Buffer.from(request.getOptions()?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString('utf8')
          receive(
            requests.map(request => ({ id: request.getCorrelationId()?.getString() ?? '', stream: nameOf(request) })),
            stream,
          )
        })
      }

    it('of one turn of the event loop are one write, in their order', async () => {
      const chunks: string[][] = []
      respond = receiving((received, stream) => {
        chunks.push(received.map(({ stream: name }) => name))
        stream.write(Buffer.concat(received.map(({ id }) => answer(id, 5n))))
      })
      const call = new AppendCall(open())
      const names = Array.from({ length: 20 }, (_, n) => `s-${n}`)
      const first = names.slice(0, 10).map(name => call.append(appendOf(name), notGivenUp()))
      await Promise.resolve()
      const rest = names.slice(10).map(name => call.append(appendOf(name), notGivenUp()))
      const outcomes = await Promise.all([...first, ...rest])
      expect(outcomes).to.deep.equal(names.map((): Appended => ({ ok: true, revision: 5n, position: 733n })))
      expect(chunks).to.deep.equal([names])
      call.end()
    })

    it('get their own answers, in whatever order these come, and answers to none of them are ignored', async () => {
      let late: Received[] = []
      respond = receiving((received, stream) => {
        late = [...late, ...received]
        if (late.length < 3) return
        stream.write(answer(randomUUID(), 99n))
        for (const { id, stream: name } of late.toReversed()) stream.write(answer(id, BigInt(name)))
      })
      const call = new AppendCall(open())
      const outcomes = await Promise.all(['1', '2', '3'].map(name => call.append(appendOf(name), notGivenUp())))
      expect(outcomes.map(outcome => outcome.ok && outcome.revision)).to.deep.equal([1n, 2n, 3n])
      call.end()
    })

    it('are not sent while the store reads nothing, nor after they were given up', async () => {
      const received: string[] = []
      let stream: ServerHttp2Stream | undefined
      respond = opened => {
        stream = opened
        opened.pause()
      }
      const call = new AppendCall(open())
      const large = (n: number): { append: Append; sending: Sending } => ({
        append: appendOf(`s-${n}`, [event({ padding: 'x'.repeat(100 * KIB) })]),
        sending: notGivenUp(),
      })
      const appends = Array.from({ length: 60 }, (_, n) => large(n))
      const settled: Promise<unknown>[] = []
      for (const { append, sending } of appends) {
        settled.push(call.append(append, sending).catch(() => undefined))
        await new Promise(resolve => setImmediate(resolve))
      }
      const sentNow = (): number => appends.filter(({ sending }) => sending.sent).length
      await eventually(() => stream !== undefined && sentNow() > 1)
      const sent = sentNow()
      // 256 KiB are held for the connection, and 64 KiB are its window.
      expect(sent).to.be.within(2, 8)
      const [abandoned, kept] = [appends.slice(50), appends.slice(0, 50)]
      for (const { sending } of abandoned) sending.isAbandoned = true
      const answering = receiving((some, opened) => {
        for (const { id, stream: name } of some) {
          received.push(name)
          opened.write(answer(id, 0n))
        }
      })
      if (stream !== undefined) answering(stream, {})
      stream?.resume()
      await Promise.all(settled.slice(0, 50))
      expect(received).to.deep.equal(kept.map(({ append }) => append.stream))
      expect(abandoned.some(({ sending }) => sending.sent)).to.equal(false)
      call.end()
    })

    it('that were sent have an unknown outcome when the call is lost; that were not, none', async () => {
      respond = stream => {
        stream.respond(GRPC)
        stream.once('data', () => stream.session?.destroy())
      }
      const call = new AppendCall(open())
      const [sent, unsent] = [notGivenUp(), notGivenUp()]
      const first = rejectionOf(call.append(appendOf('s-1'), sent))
      expect(await first).to.include({ type: 'unavailable' })
      expect(sent.sent).to.equal(true)
      expect(await rejectionOf(call.append(appendOf('s-2'), unsent))).to.be.instanceOf(CallEnded)
      expect(unsent.sent).to.equal(false)
      expect(call.isOpen()).to.equal(false)
    })

    it('that cannot be encoded fail alone', async () => {
      respond = receiving((received, stream) => {
        for (const { id } of received) stream.write(answer(id, 0n))
      })
      const call = new AppendCall(open())
      const circular: Record<string, unknown> = {}
      circular['self'] = circular
      const [before, broken, after] = [
        call.append(appendOf('s-1'), notGivenUp()),
        rejectionOf(call.append(appendOf('s-2', [{ ...event(), data: circular as NewEvent['data'] }]), notGivenUp())),
        call.append(appendOf('s-3'), notGivenUp()),
      ]
      expect(await broken).to.be.instanceOf(TypeError)
      expect([(await before).ok, (await after).ok]).to.deep.equal([true, true])
      call.end()
    })
  })
})
