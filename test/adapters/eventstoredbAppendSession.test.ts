import { once } from 'node:events'
import {
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
  createServer,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import serverFeatures from '@eventstore/db-client/generated/serverfeatures_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import type { WriteRequest, Written } from '../../src/embedded/eventstore/writeRequest.ts'
import { MessageSplitter, prefixed } from '../../src/grpc/framing.ts'
import type { EventStore } from '../../src/ports.ts'
import { event } from '../contracts/eventStoreFixtures.ts'
import { eventually } from '../support/eventually.ts'
import { startOlderStore } from './eventstoredbWire.ts'

const MESSAGE_BYTES_MAX = 17 * 1024 * 1024
const GRPC = { ':status': 200, 'content-type': 'application/grpc' }
const SUPPORTED_METHODS = '/event_store.client.server_features.ServerFeatures/GetSupportedMethods'
const DONE: unknown = { ok: true, revision: 0n, position: 733n }

/** The appends that came on one stream of HTTP/2. */
type Call = { readonly stream: ServerHttp2Stream; readonly headers: IncomingHttpHeaders; appends: number }
type Node = {
  readonly port: number
  readonly calls: Call[]
  readonly sessions: ServerHttp2Session[]
  /** The trailers with which a call ends in place of an answer; undefined to answer. */
  refuse: (call: Call) => Record<string, string> | undefined
  stop(): void
}

const success = (request: InstanceType<typeof streams.BatchAppendReq>): Buffer => {
  const at = new shared.AllStreamPosition().setCommitPosition('733').setPreparePosition('733')
  const written = new streams.BatchAppendResp.Success().setCurrentRevision('0').setPosition(at)
  const answer = new streams.BatchAppendResp().setCorrelationId(request.getCorrelationId()).setSuccess(written)
  return prefixed(answer.serializeBinary())
}

/** Says that the node has the BatchAppend method. */
const respondWithMethods = (stream: ServerHttp2Stream): void => {
  const method = new serverFeatures.SupportedMethod().setServiceName('event_store.client.streams.streams')
  const methods = new serverFeatures.SupportedMethods().setMethodsList([method.setMethodName('batchappend')])
  stream.on('error', () => undefined)
  stream.resume()
  stream.respond(GRPC, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(prefixed(methods.serializeBinary()))
}

/** A node that answers every append with success, unless it refuses the call. */
const startNode = async (settings: Settings = {}): Promise<Node> => {
  const server = createServer({ settings })
  const node: Node = {
    port: 0,
    calls: [],
    sessions: [],
    refuse: () => undefined,
    stop: () => {
      for (const session of node.sessions) session.destroy()
      server.close()
    },
  }
  server.on('session', session => node.sessions.push(session))
  server.on('stream', (stream, headers) => {
    if (headers[':path'] === SUPPORTED_METHODS) return respondWithMethods(stream)
    const call: Call = { stream, headers, appends: 0 }
    const splitter = new MessageSplitter(MESSAGE_BYTES_MAX)
    let trailers: Record<string, string> = { 'grpc-status': '0' }
    node.calls.push(call)
    stream.on('error', () => undefined)
    stream.respond(GRPC, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    stream.on('end', () => stream.end())
    stream.on('data', (chunk: Buffer) => {
      for (const bytes of splitter.messagesWith(chunk)) {
        call.appends += 1
        const refused = node.refuse(call)
        trailers = refused ?? trailers
        if (refused !== undefined) return void stream.end()
        stream.write(success(streams.BatchAppendReq.deserializeBinary(new Uint8Array(bytes))))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(node, { port: (server.address() as AddressInfo).port })
}

/** The headers of a call of the gRPC library, unlike those of ours. */
const isOfTheLibrary = ({ headers }: Call): boolean => headers['grpc-accept-encoding'] !== 'identity'

describe('EventStoreDB adapter: the sessions of appends', () => {
  let node: Node
  let other: Node
  let store: EventStore
  const appendOne = () => store.append('s-1', [event()], 'no_stream')

  beforeEach(async () => {
    node = await startNode()
    other = await startNode()
    store = openEventStore({ connectionString: `esdb://127.0.0.1:${node.port}?tls=false` })
  })
  afterEach(async () => {
    await store.close()
    node.stop()
    other.stop()
  })

  it('the first append is made by the client, the later ones on its session; its call stays open', async () => {
    for (let n = 0; n < 5; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    expect(node.sessions).to.have.length(1)
    expect(node.calls.map(isOfTheLibrary)).to.deep.equal([true, false])
    expect(node.calls.map(({ appends }) => appends)).to.deep.equal([1, 4])
    expect(node.calls[0]?.stream.readableEnded, 'the half of the client').to.equal(false)
    const [byLibrary, ours] = node.calls
    for (const name of ['connection-name', 'user-agent', ':authority', ':path', ':method', 'content-type', 'te'])
      expect(ours?.headers[name], name).to.equal(byLibrary?.headers[name])
  })

  it('appends at the same time share the call of the client until there is a session', async () => {
    const outcomes = await Promise.all(Array.from({ length: 30 }, appendOne))
    expect(outcomes).to.deep.equal(outcomes.map(() => DONE))
    expect(node.calls).to.have.length(1)
  })

  it('a connection that the store closes is left: its calls end, and the client opens another one', async () => {
    for (let n = 0; n < 3; n += 1) await appendOne()
    const ended = node.calls.map(({ stream }) => once(stream, 'close'))
    node.sessions[0]?.close()
    for (let n = 0; n < 5; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    await Promise.all(ended)
    expect(node.sessions).to.have.length(2)
    expect(node.calls.map(isOfTheLibrary)).to.deep.equal([true, false, true, false])
  })

  it('an append on a connection that is lost is made on another one', async () => {
    for (let n = 0; n < 2; n += 1) await appendOne()
    node.refuse = ({ stream }) => {
      node.refuse = () => undefined
      stream.session?.destroy()
      return undefined
    }
    expect(await appendOne()).to.deep.equal(DONE)
    expect(await appendOne()).to.deep.equal(DONE)
    expect(node.sessions).to.have.length(2)
  })

  it('a call that is reset alone is replaced', async () => {
    for (let n = 0; n < 2; n += 1) await appendOne()
    node.calls[1]?.stream.close(8)
    await eventually(() => node.calls[1]?.stream.closed === true)
    for (let n = 0; n < 4; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    expect(node.calls.map(isOfTheLibrary)).to.deep.equal([true, false, true, false])
    expect(node.calls.map(({ stream }) => stream.closed)).to.deep.equal([true, true, false, false])
  })

  it('a node that is not the leader any more is left for the leader', async () => {
    for (let n = 0; n < 2; n += 1) await appendOne()
    node.refuse = () => ({
      'grpc-status': '5',
      'grpc-message': 'Leader info available',
      exception: 'not-leader',
      'leader-endpoint-host': '127.0.0.1',
      'leader-endpoint-port': String(other.port),
    })
    for (let n = 0; n < 3; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    expect(other.calls.map(isOfTheLibrary)).to.deep.equal([true, false])
    expect(other.calls.map(({ appends }) => appends)).to.deep.equal([1, 2])
  })

  it('a store that admits few calls at a time has only the call of the client', async () => {
    const few = await startNode({ maxConcurrentStreams: 2 })
    const narrow = openEventStore({ connectionString: `esdb://127.0.0.1:${few.port}?tls=false` })
    try {
      for (let n = 0; n < 3; n += 1) expect(await narrow.append('s-1', [event()], 'no_stream')).to.deep.equal(DONE)
      expect(few.calls.map(isOfTheLibrary)).to.deep.equal([true])
    } finally {
      await narrow.close()
      few.stop()
    }
  })

  it('a store that has BatchAppend, and refuses it once as unimplemented, is asked for it again', async () => {
    for (let n = 0; n < 2; n += 1) await appendOne()
    node.refuse = () => {
      node.refuse = () => undefined
      return { 'grpc-status': '12', 'grpc-message': 'a page of a proxy' }
    }
    for (let n = 0; n < 4; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    expect(node.calls.map(isOfTheLibrary)).to.deep.equal([true, false, true, false])
    await eventually(() => node.calls.slice(0, 2).every(({ stream }) => stream.closed))
  })

  it('a connection is closed when a call on it has failed and another one is used', async () => {
    for (let n = 0; n < 2; n += 1) await appendOne()
    node.refuse = () => {
      node.refuse = () => undefined
      return { 'grpc-status': '14', 'grpc-message': 'not now' }
    }
    for (let n = 0; n < 4; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    expect(node.calls.map(isOfTheLibrary)).to.deep.equal([true, false, true, false])
    await eventually(() => node.sessions[0]?.destroyed === true)
  })

  it('a store without BatchAppend gets each append in a call of the client', async () => {
    const requests: WriteRequest[] = []
    const write = (request: WriteRequest): Promise<Written> => {
      requests.push(request)
      return Promise.resolve(
        requests.length < 3 ? { kind: 'written', revision: 0n, position: 733n } : { kind: 'wrong_version', actual: 7n },
      )
    }
    const old = await startOlderStore(write)
    const older = openEventStore({ connectionString: old.address })
    try {
      const sent = [event({ n: 1 })]
      expect(await older.append('s-1', sent, 'no_stream')).to.deep.equal(DONE)
      expect(await older.append('s-1', [event()], 3n)).to.deep.equal(DONE)
      expect(await older.append('s-1', [event()], 3n)).to.deep.equal({ ok: false, actual: 7n })
      expect(requests.map(({ expected }) => expected)).to.deep.equal(['no_stream', 3n, 3n])
      const [stored] = requests[0]?.events ?? []
      expect(stored).to.include({ id: sent[0]?.id, type: sent[0]?.type, isJson: true })
      expect(stored?.data.toString()).to.equal(JSON.stringify(sent[0]?.data))
    } finally {
      await older.close()
      old.stop()
    }
  })
})
