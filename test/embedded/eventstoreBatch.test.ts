import { Server, ServerCredentials } from '@grpc/grpc-js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { BATCH_APPEND, batchAppend } from '../../src/embedded/eventstore/protocol/batchAppend.ts'
import { openStreams } from '../../src/embedded/eventstore/streams.ts'
import { openTail } from '../../src/embedded/eventstore/tail.ts'
import type { Writer } from '../../src/embedded/eventstore/writer.ts'
import type { Written } from '../../src/embedded/eventstore/writeRequest.ts'
import { type EventStore, Unavailable } from '../../src/ports.ts'
import { event } from '../contracts/eventStoreFixtures.ts'

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('embedded event store: appends that share a call', () => {
  const outcomes = new Map<string, Promise<Written>>()
  const committed = Promise.withResolvers<Written>()
  let server: Server
  let store: EventStore

  before(async () => {
    const writer: Writer = {
      tail: openTail(),
      streams: openStreams(),
      write: ({ stream }) => outcomes.get(stream) ?? committed.promise,
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
    store = openEventStore({ connectionString: `esdb://127.0.0.1:${port}?tls=false` })
  })
  after(async () => {
    await store.close()
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
})
