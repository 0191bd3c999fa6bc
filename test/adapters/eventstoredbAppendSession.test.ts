import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import {
  connect,
  createServer,
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { join } from 'node:path'
import serverFeatures from '@eventstore/db-client/generated/serverfeatures_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { keepAlive } from '../../src/adapters/eventstoredb/session.ts'
import type { WriteRequest, Written } from '../../src/embedded/eventstore/writeRequest.ts'
import { MessageSplitter, prefixed } from '../../src/grpc/framing.ts'
import type { EventStore } from '../../src/ports.ts'
import { event } from '../contracts/eventStoreFixtures.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { selfSigned } from '../support/selfSigned.ts'
import { temporaryDirectory } from '../support/service.ts'
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
const startNode = async (server: Http2Server | Http2SecureServer = createServer()): Promise<Node> => {
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

  it('all appends share one call, which asks for the leader and names its connection', async () => {
    const outcomes = await Promise.all(Array.from({ length: 30 }, appendOne))
    expect([...outcomes, await appendOne()]).to.deep.equal(Array.from({ length: 31 }, () => DONE))
    expect(node.sessions).to.have.length(1)
    expect(node.calls.map(({ appends }) => appends)).to.deep.equal([31])
    expect(node.calls[0]?.headers).to.include({ 'requires-leader': 'true', te: 'trailers' })
    expect(node.calls[0]?.headers['connection-name']).to.match(/^[0-9a-f-]{36}$/)
  })

  it('a connection that the store closes is left for another one, and its calls end', async () => {
    for (let n = 0; n < 3; n += 1) await appendOne()
    const ended = node.calls.map(({ stream }) => once(stream, 'close'))
    node.sessions[0]?.close()
    for (let n = 0; n < 5; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    await Promise.all(ended)
    expect(node.sessions).to.have.length(2)
    expect(node.calls.reduce((sum, { appends }) => sum + appends, 0)).to.equal(8)
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
    node.calls[0]?.stream.close(8)
    await eventually(() => node.calls[0]?.stream.closed === true)
    for (let n = 0; n < 4; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    expect(node.calls.map(({ stream }) => stream.closed)).to.deep.equal([true, false])
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
    expect(other.calls.map(({ appends }) => appends)).to.deep.equal([3])
  })

  it('a store that has BatchAppend, and refuses it once as unimplemented, is asked for it again', async () => {
    for (let n = 0; n < 2; n += 1) await appendOne()
    node.refuse = () => {
      node.refuse = () => undefined
      return { 'grpc-status': '12', 'grpc-message': 'a page of a proxy' }
    }
    for (let n = 0; n < 4; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    await eventually(() => node.calls[0]?.stream.closed === true)
    expect(node.calls).to.have.length(2)
  })

  it('a call that the store ends as unavailable is replaced', async () => {
    for (let n = 0; n < 2; n += 1) await appendOne()
    node.refuse = () => {
      node.refuse = () => undefined
      return { 'grpc-status': '14', 'grpc-message': 'not now' }
    }
    for (let n = 0; n < 4; n += 1) expect(await appendOne()).to.deep.equal(DONE)
    await eventually(() => node.calls[0]?.stream.closed === true)
    expect(node.calls).to.have.length(2)
  })

  it('a connection over TLS verifies the certificate by the CA file, and has the credentials', async () => {
    const { cert, key } = selfSigned()
    const folder = await temporaryDirectory()
    const caFile = join(folder, 'ca.pem')
    await writeFile(caFile, cert)
    const secure = await startNode(createSecureServer({ cert, key }))
    const address = `esdb://ledger:p%40ss@localhost:${secure.port}?tlsCAFile=${encodeURIComponent(caFile)}`
    const overTls = openEventStore({ connectionString: address })
    try {
      expect(await overTls.append('s-1', [event()], 'no_stream')).to.deep.equal(DONE)
      const authorization = `Basic ${Buffer.from('ledger:p@ss').toString('base64')}`
      expect(secure.calls[0]?.headers).to.include({ authorization, ':scheme': 'https' })
    } finally {
      await overTls.close()
      secure.stop()
      await removeFolder(folder)
    }
  })

  it('a connection without TLS has no credentials, as that of the client', async () => {
    const open = openEventStore({ connectionString: `esdb://ledger:secret@127.0.0.1:${node.port}?tls=false` })
    expect(await open.append('s-1', [event()], 'no_stream')).to.deep.equal(DONE)
    expect(node.calls[0]?.headers).not.to.have.property('authorization')
    await open.close()
  })

  it('a connection is ended when a ping on it stays unanswered', async () => {
    const sockets: Socket[] = []
    const mute = createTcpServer(socket => sockets.push(socket)).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const http2 = connect(`http://127.0.0.1:${(mute.address() as AddressInfo).port}`)
    await once(http2, 'connect')
    keepAlive(http2, { intervalMs: 5, timeoutMs: 20 })
    await once(http2, 'close')
    for (const socket of sockets) socket.destroy()
    mute.close()
  })

  it('a connection stays while pings are answered', async () => {
    await appendOne()
    const http2 = connect(`http://127.0.0.1:${node.port}`)
    let pings = 0
    await once(http2, 'connect')
    await eventually(() => node.sessions.length === 2)
    node.sessions[1]?.on('ping', () => void (pings += 1))
    keepAlive(http2, { intervalMs: 5, timeoutMs: 60_000 })
    await eventually(() => pings > 3)
    expect(http2.destroyed).to.equal(false)
    http2.destroy()
  })

  it('a store without BatchAppend gets each append in a call of its own', async () => {
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
