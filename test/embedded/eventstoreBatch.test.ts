import { randomUUID } from 'node:crypto'
import { Server, ServerCredentials, credentials, status } from '@grpc/grpc-js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendReq, BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { batchAppend } from '../../src/embedded/eventstore/protocol/batchAppend.ts'
import { BATCH_APPEND } from '../../src/embedded/eventstore/protocol/batchRequest.ts'
import { identifierOf, uuidMessage } from '../../src/embedded/eventstore/protocol/messages.ts'
import { openStreams } from '../../src/embedded/eventstore/streams.ts'
import { openTail } from '../../src/embedded/eventstore/tail.ts'
import type { Writer } from '../../src/embedded/eventstore/writer.ts'
import type { Written } from '../../src/embedded/eventstore/writeRequest.ts'
import { type EventStore, Unavailable } from '../../src/ports.ts'
import { event } from '../contracts/eventStoreFixtures.ts'
import { eventually, standstill } from '../support/eventually.ts'

/** Longer than that of production, which a machine under load exceeds. */
const DEADLINE_MS = 120_000
const UNANSWERED_MAX = 2000
const WRITTEN: Written = { kind: 'written', revision: 0n, position: 733n }

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

const requestTo = (stream: string): BatchAppendReq => {
  const options = new streams.BatchAppendReq.Options()
    .setStreamIdentifier(identifierOf(stream))
    .setNoStream(new empty.Empty())
  const proposed = new streams.BatchAppendReq.ProposedMessage().setId(uuidMessage(randomUUID(), 'string'))
  proposed.getMetadataMap().set('type', 'Made').set('content-type', 'application/json')
  return new streams.BatchAppendReq()
    .setCorrelationId(uuidMessage(randomUUID(), 'structured'))
    .setOptions(options)
    .setProposedMessagesList([proposed])
    .setIsFinal(true)
}

describe('embedded event store: appends that share a call', () => {
  const outcomes = new Map<string, Promise<Written>>()
  const committed = Promise.withResolvers<Written>()
  let server: Server
  let store: EventStore
  let client: InstanceType<typeof streamsGrpc.StreamsClient>
  let requested: string[] = []

  before(async () => {
    const writer: Writer = {
      tail: openTail(),
      streams: openStreams(),
      write: ({ stream }) => {
        requested.push(stream)
        return outcomes.get(stream) ?? committed.promise
      },
      close: () => Promise.resolve(),
    }
    server = new Server()
    const unused = () => undefined
    const methods = { append: unused, delete: unused, tombstone: unused, read: unused }
    server.addService(
      { ...streamsGrpc.StreamsService, batchAppend: BATCH_APPEND },
      { ...methods, batchAppend: batchAppend(writer) },
    )
    const port = await new Promise<number>(resolve =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_, bound) => resolve(bound)),
    )
    store = openEventStore({ connectionString: `esdb://127.0.0.1:${port}?tls=false`, appendDeadlineMs: DEADLINE_MS })
    client = new streamsGrpc.StreamsClient(`127.0.0.1:${port}`, credentials.createInsecure())
  })
  beforeEach(() => {
    requested = []
  })
  after(async () => {
    await store.close()
    client.close()
    server.forceShutdown()
  })

  it('have separate outcomes when the batch of one fails', async () => {
    outcomes.set('s-none', Promise.resolve({ kind: 'unavailable', effect: 'none' }))
    outcomes.set('s-unknown', Promise.resolve({ kind: 'unavailable', effect: 'unknown' }))
    const queued = ['s-1', 's-2', 's-3'].map(stream => store.append(stream, [event()], 'no_stream'))
    const [none, unknown] = await Promise.all(
      ['s-none', 's-unknown'].map(stream => failureOf(store.append(stream, [event()], 'no_stream'))),
    )
    committed.resolve({ kind: 'written', revision: 0n, position: 733n })
    expect(none).to.be.instanceOf(Unavailable).and.to.include({ effect: 'none' })
    expect(unknown).to.be.instanceOf(Unavailable).and.to.include({ effect: 'unknown' })
    expect(await Promise.all(queued)).to.deep.equal(queued.map(() => ({ ok: true, revision: 0n, position: 733n })))
  })
  /** A call, and what it has received. */
  const open = () => {
    const call = client.batchAppend()
    const responses: BatchAppendResp[] = []
    const ended = new Promise<number>(resolve => call.on('status', ({ code }) => resolve(code)))
    call.on('data', (response: BatchAppendResp) => responses.push(response)).on('error', () => undefined)
    return { call, responses, ended }
  }

  it('are all answered before a call ends whose client has sent everything', async () => {
    const later = Promise.withResolvers<Written>()
    outcomes.set('s-now', Promise.resolve(WRITTEN)).set('s-later', later.promise)
    const { call, responses, ended } = open()
    const requests = ['s-now', 's-later'].map(requestTo)
    for (const request of requests) call.write(request)
    call.end()
    await eventually(() => responses.length === 1 && requested.length === 2)
    later.resolve({ ...WRITTEN, revision: 2n ** 60n, position: 2n ** 61n })
    expect(await ended).to.equal(status.OK)
    expect(responses.map(response => response.getCorrelationId()?.toObject())).to.deep.equal(
      requests.map(request => request.getCorrelationId()?.toObject()),
    )
    expect(responses.map(response => response.getSuccess()?.getCurrentRevision())).to.deep.equal(['0', `${2n ** 60n}`])
    expect(responses[1]?.getSuccess()?.getPosition()?.getCommitPosition()).to.equal(`${2n ** 61n}`)
  })

  it('are left in the socket beyond 2,000 unanswered ones, until those are answered', async () => {
    const held = Promise.withResolvers<Written>()
    outcomes.set('s-held', held.promise)
    const { call, responses, ended } = open()
    const count = UNANSWERED_MAX + 500
    for (let n = 0; n < count; n += 1) call.write(requestTo('s-held'))
    call.end()
    await eventually(() => requested.length >= UNANSWERED_MAX)
    // The library has passed a few on already.
    expect(await standstill(() => requested.length)).to.be.lessThan(UNANSWERED_MAX + 100)
    held.resolve(WRITTEN)
    expect(await ended).to.equal(status.OK)
    expect(responses).to.have.length(count)
  })

  it('lose only their answers when their call is cancelled', async () => {
    const held = Promise.withResolvers<Written>()
    outcomes.set('s-held', held.promise).set('s-next', Promise.resolve(WRITTEN))
    const { call, ended } = open()
    call.write(requestTo('s-held'))
    await eventually(() => requested.length === 1)
    call.cancel()
    expect(await ended).to.equal(status.CANCELLED)
    held.resolve(WRITTEN)
    const next = open()
    next.call.write(requestTo('s-next'))
    next.call.end()
    expect(await next.ended).to.equal(status.OK)
    expect(next.responses).to.have.length(1)
  })
})
