import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { commitBatch } from '../../src/embedded/eventstore/commit.ts'
import { type Expected, endOf, metastreamOf } from '../../src/embedded/eventstore/record.ts'
import { type WriterSession, openWriterSession } from '../../src/embedded/eventstore/storage.ts'
import { type Streams, openStreams } from '../../src/embedded/eventstore/streams.ts'
import type { WriteRequest, Written } from '../../src/embedded/eventstore/writeRequest.ts'
import { newDatabase } from '../support/postgres.ts'

const STREAMS_MANY = 50

const newStream = (): string => `made-${randomUUID()}`

const requestOf = (stream: string, expected: Expected, ids: readonly string[], json = '{}'): WriteRequest => ({
  kind: 'append',
  stream,
  expected,
  events: ids.map(id => ({ id, type: 'Made', isJson: true, data: Buffer.from(json), metadata: Buffer.alloc(0) })),
  bytes: 0,
  deadlineMs: Number.POSITIVE_INFINITY,
})

const creationOf = (stream: string, ...ids: readonly string[]): WriteRequest =>
  requestOf(stream, 'no_stream', ids.length === 0 ? [randomUUID()] : ids)

const metadataOf = (stream: string, json: string): WriteRequest =>
  requestOf(metastreamOf(stream), 'no_stream', [randomUUID()], json)

const otherKind = (kind: 'delete' | 'tombstone', stream: string): WriteRequest => ({
  ...requestOf(stream, 'any', []),
  kind,
})

const revisionOf = (written: Written | undefined): bigint | undefined =>
  written?.kind === 'written' ? written.revision : undefined

describe('embedded event store: the commit of a batch', () => {
  let session: WriterSession
  let streams: Streams
  let end = 10_000n
  let statements = 0

  before(async () => {
    const opened = await openWriterSession(await newDatabase())
    session = {
      ...opened,
      query: (...statement) => {
        statements += 1
        return opened.query(...statement)
      },
      insert: (...values) => {
        statements += 1
        return opened.insert(...values)
      },
    }
  })
  after(() => session.end())
  beforeEach(() => {
    streams = openStreams()
    statements = 0
  })

  /** The positions of the log go on; so does the cache, unless the test replaces it. */
  const commit = async (...requests: readonly WriteRequest[]): Promise<readonly Written[]> => {
    const { records, written } = await commitBatch({ session, streams, end }, requests)
    for (const record of records) {
      streams.committed(record)
      end = endOf(record)
    }
    return written
  }

  /** As after a restart, or when other streams have displaced these ones. */
  const emptyCache = (): void => {
    streams = openStreams()
  }

  it('takes two statements for new streams, and one for further events of them', async () => {
    const names = Array.from({ length: STREAMS_MANY }, newStream)
    const created = await commit(...names.map(name => creationOf(name)))
    expect(new Set(created.map(revisionOf))).to.deep.equal(new Set([0n]))
    expect(statements).to.equal(2)
    const continued = await commit(...names.map(name => requestOf(name, 0n, [randomUUID()])))
    expect(new Set(continued.map(revisionOf))).to.deep.equal(new Set([1n]))
    expect(statements).to.equal(3)
  })

  it('refuses to create a stream that is stored and not cached, and creates the others of the batch', async () => {
    const [stored, first, last] = [newStream(), newStream(), newStream()]
    await commit(creationOf(stored), requestOf(stored, 0n, [randomUUID()]))
    emptyCache()
    const written = await commit(creationOf(first), creationOf(stored), creationOf(last))
    expect(written.map(({ kind }) => kind)).to.deep.equal(['written', 'wrong_version', 'written'])
    expect(written[1]).to.deep.equal({ kind: 'wrong_version', actual: 1n })
    expect((await commit(requestOf(first, 0n, [randomUUID()]))).map(revisionOf)).to.deep.equal([1n])
  })

  it('recognizes the resend of a creation that is stored and not cached', async () => {
    const [stream, id] = [newStream(), randomUUID()]
    const [first] = await commit(creationOf(stream, id))
    await commit(requestOf(stream, 0n, [randomUUID()]))
    emptyCache()
    expect(await commit(creationOf(stream, id))).to.deep.equal([first])
  })

  it('accepts one of two creations of a stream in one batch', async () => {
    const stream = newStream()
    const written = await commit(creationOf(stream), creationOf(stream))
    expect(written).to.deep.include({ kind: 'wrong_version', actual: 0n })
    expect(revisionOf(written[0])).to.equal(0n)
  })

  it('continues a stream that another request of the batch creates', async () => {
    const stream = newStream()
    const written = await commit(
      creationOf(stream),
      requestOf(stream, 0n, [randomUUID()]),
      requestOf(stream, 'any', [randomUUID()]),
    )
    expect(written.map(revisionOf)).to.deep.equal([0n, 1n, 2n])
  })

  it('keeps metadata in force that was set before the stream was created', async () => {
    const stream = newStream()
    await commit(metadataOf(stream, '{"$maxCount":1}'))
    emptyCache()
    expect((await commit(creationOf(stream, randomUUID(), randomUUID()))).map(revisionOf)).to.deep.equal([1n])
    expect(streams.get(stream)?.truncation.maxCount).to.equal(1n)
  })

  it('appends to a soft-deleted stream after its last event, and refuses a tombstoned one', async () => {
    const [deleted, tombstoned] = [newStream(), newStream()]
    await commit(creationOf(deleted), creationOf(tombstoned))
    await commit(otherKind('delete', deleted), otherKind('tombstone', tombstoned))
    emptyCache()
    const written = await commit(creationOf(deleted), creationOf(tombstoned), creationOf(newStream()))
    expect(written.map(({ kind }) => kind)).to.deep.equal(['written', 'deleted', 'written'])
    expect(revisionOf(written[0])).to.equal(1n)
  })

  it('refuses a stale expectation also of an append without events', async () => {
    const stream = newStream()
    await commit(creationOf(stream))
    emptyCache()
    const nothing = requestOf(stream, 'no_stream', [])
    expect((await commit(nothing)).map(({ kind }) => kind)).to.deep.equal(['wrong_version'])
  })
})
