import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders, connect } from 'node:http2'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import { PREFIX_BYTES, prefixed } from '../../src/grpc/framing.ts'
import { type Raw, newStream, startRaw } from './rawEventStoreClient.ts'

const INTERNAL = '13'
const FAILED_PRECONDITION = '9'
const COUNT = 100

const requestFor = (stream: string): Buffer => {
  const identifier = new shared.StreamIdentifier().setStreamName(Buffer.from(stream))
  const asked = new streams.ReadReq.Options.StreamOptions().setStreamIdentifier(identifier).setStart(new shared.Empty())
  const uuids = new streams.ReadReq.Options.UUIDOption().setString(new shared.Empty())
  const options = new streams.ReadReq.Options().setStream(asked).setCount(String(COUNT)).setUuidOption(uuids)
  return prefixed(new streams.ReadReq().setOptions(options).serializeBinary())
}

type Response = { readonly head: IncomingHttpHeaders; readonly trailers: IncomingHttpHeaders; readonly body: Buffer }

describe('embedded event store: the Read method on a stream of HTTP/2', () => {
  let raw: Raw
  let http2: ClientHttp2Session
  const stream = newStream()

  before(async () => {
    raw = await startRaw()
    await raw.append(stream, 3)
    http2 = connect(raw.node.address.replace(/^esdb:/, 'http:').replace(/\?.*$/, ''))
  })
  after(async () => {
    http2.destroy()
    await raw.stop()
  })

  const call = (headers: Record<string, string> = {}): ClientHttp2Stream =>
    http2.request({
      ':method': 'POST',
      ':path': '/event_store.client.streams.Streams/Read',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    })

  const responseTo = async (chunks: readonly Buffer[], headers: Record<string, string> = {}): Promise<Response> => {
    const opened = call(headers)
    let head: IncomingHttpHeaders = {}
    let trailers: IncomingHttpHeaders = {}
    const received: Buffer[] = []
    opened.on('response', all => (head = all)).on('trailers', all => (trailers = all))
    opened.on('data', (chunk: Buffer) => received.push(chunk))
    for (const chunk of chunks) opened.write(chunk)
    opened.end()
    await once(opened, 'close')
    return { head, trailers, body: Buffer.concat(received) }
  }

  const revisionsIn = (body: Buffer): string[] => {
    const revisions: string[] = []
    for (let at = 0; at < body.length; ) {
      const end = at + PREFIX_BYTES + body.readUInt32BE(at + 1)
      const event = streams.ReadResp.deserializeBinary(body.subarray(at + PREFIX_BYTES, end)).getEvent()
      revisions.push(event?.getEvent()?.getStreamRevision() ?? 'none')
      at = end
    }
    return revisions
  }

  it('sends the events, then status 0, and names no coding but identity', async () => {
    const { head, trailers, body } = await responseTo([requestFor(stream)])
    expect(head).to.include({ ':status': 200, 'grpc-accept-encoding': 'identity' })
    expect(trailers['grpc-status']).to.equal('0')
    expect(revisionsIn(body)).to.deep.equal(['0', '1', '2'])
  })

  it('takes a request that comes in pieces', async () => {
    const request = requestFor(stream)
    const pieces = [request.subarray(0, 3), request.subarray(3, 10), request.subarray(10)]
    expect(revisionsIn((await responseTo(pieces)).body)).to.deep.equal(['0', '1', '2'])
  })

  it('ends with the status and the trailers of a refusal', async () => {
    const deleted = newStream('räd')
    await raw.append(deleted, 1)
    await raw.client.tombstoneStream(deleted)
    const { trailers, body } = await responseTo([requestFor(deleted)])
    expect(trailers).to.include({ 'grpc-status': FAILED_PRECONDITION, exception: 'stream-deleted' })
    expect(decodeURIComponent(String(trailers['grpc-message']))).to.equal(`Event stream '${deleted}' is deleted.`)
    expect(body).to.have.length(0)
  })

  it('refuses no request, two requests, a part of one, and bytes that are none', async () => {
    const request = requestFor(stream)
    const wrong = [[], [request, request], [request.subarray(0, -1)], [prefixed(Buffer.from([255, 255, 255]))]]
    for (const chunks of wrong) expect((await responseTo(chunks)).trailers['grpc-status']).to.equal(INTERNAL)
  })

  it('refuses a compressed request and one that is too large, before its end', async () => {
    const compressed = Buffer.from([1, 0, 0, 0, 1, 0])
    const large = Buffer.from([0, 255, 0, 0, 0])
    for (const chunk of [compressed, large]) {
      const opened = call()
      const trailers = once(opened, 'trailers')
      opened.on('error', () => undefined).resume()
      opened.write(chunk)
      expect((await trailers)[0]).to.include({ 'grpc-status': INTERNAL })
      opened.destroy()
    }
  })

  it('leaves calls with a deadline to the gRPC library', async () => {
    const { head, body } = await responseTo([requestFor(stream)], { 'grpc-timeout': '10S' })
    expect(head['grpc-accept-encoding']).to.not.equal('identity')
    expect(revisionsIn(body)).to.deep.equal(['0', '1', '2'])
  })

  it('survives calls that are cancelled before, with and after their request', async () => {
    for (const write of [() => undefined, (opened: ClientHttp2Stream) => void opened.end(requestFor(stream))])
      for (let n = 0; n < 20; n += 1) {
        const opened = call()
        opened.on('error', () => undefined)
        write(opened)
        if (n % 2 === 0) await new Promise(resolve => setImmediate(resolve))
        opened.close(8)
        await once(opened, 'close')
      }
    expect(revisionsIn((await responseTo([requestFor(stream)])).body)).to.deep.equal(['0', '1', '2'])
  })
})
