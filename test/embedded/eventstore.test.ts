import {
  EventStoreDBClient,
  binaryEvent,
  jsonEvent,
  persistentSubscriptionToStreamSettingsFromDefaults,
} from '@eventstore/db-client'
import { expect } from 'chai'
import { NODE, type TestNode } from './eventStoreNode.ts'
import { type Failure, type Raw, collect, failureOf, made, newStream, startRaw } from './rawEventStoreClient.ts'
import { endPrograms, runProgram } from './childProcesses.ts'
import { eventually } from '../support/eventually.ts'

const MEBIBYTE = 1024 * 1024
/** With credentials the client uses the plain `Append` call. */
const plain = { credentials: { username: 'admin', password: 'unused' } }

describe('embedded event store: writing, and its process', () => {
  let node: TestNode
  let client: EventStoreDBClient
  let append: Raw['append']
  let revisionsOf: Raw['revisionsOf']
  let stop: Raw['stop']

  before(async () => {
    ;({ node, client, append, revisionsOf, stop } = await startRaw({ hasOwnPostgres: true }))
  })
  after(async () => {
    await stop()
    await endPrograms()
  })

  for (const [call, options] of [
    ['BatchAppend', {}],
    ['Append', plain],
  ] as const)
    describe(call, () => {
      it('responds with revision and position', async () => {
        const stream = newStream()
        const first = await client.appendToStream(stream, [made(), made()], {
          expectedRevision: 'no_stream',
          ...options,
        })
        const second = await client.appendToStream(stream, made(), { expectedRevision: 1n, ...options })
        expect([first.nextExpectedRevision, second.nextExpectedRevision]).to.deep.equal([1n, 2n])
        const read = (await collect(client.readStream(stream))).map(({ position }) => position)
        expect([first.position, second.position]).to.deep.equal(read.slice(1))
        expect((read[2]?.commit ?? 0n) - (read[1]?.commit ?? 0n) > 90n, 'positions are byte offsets').to.equal(true)
        expect(second.position?.prepare).to.equal(second.position?.commit)
      })

      it('returns the current revision when another was expected', async () => {
        const stream = newStream()
        await append(stream, 3)
        const stale = await failureOf(client.appendToStream(stream, made(), { expectedRevision: 0n, ...options }))
        expect(stale).to.deep.include({ type: 'wrong-expected-version', actualVersion: 2n, streamName: stream })
        const missing = await failureOf(
          client.appendToStream(newStream(), made(), { expectedRevision: 5n, ...options }),
        )
        expect(missing).to.deep.include({ type: 'wrong-expected-version', actualVersion: 'no_stream' })
      })

      it('appends in any state, and recognizes a resend', async () => {
        const stream = newStream()
        const sent = [made(1), made(2)]
        const first = await client.appendToStream(stream, sent, { expectedRevision: 'any', ...options })
        await append(stream, 2)
        expect(await client.appendToStream(stream, sent, { expectedRevision: 'any', ...options })).to.deep.equal(first)
        expect(await revisionsOf(stream)).to.deep.equal([0, 1, 2, 3])
      })

      it('requires an existing stream on request', async () => {
        const stream = newStream()
        const missing = await failureOf(
          client.appendToStream(stream, made(), { expectedRevision: 'stream_exists', ...options }),
        )
        expect(missing.type).to.equal('wrong-expected-version')
        await append(stream, 1)
        const appended = await client.appendToStream(stream, made(), { expectedRevision: 'stream_exists', ...options })
        expect(appended.nextExpectedRevision).to.equal(1n)
      })

      it('refuses a tombstoned stream for every expected revision', async () => {
        const stream = newStream()
        await append(stream, 1)
        await client.tombstoneStream(stream)
        for (const expectedRevision of ['any', 'no_stream', 'stream_exists', 0n] as const) {
          const refusal = await failureOf(client.appendToStream(stream, made(), { expectedRevision, ...options }))
          expect(refusal).to.deep.include({ type: 'stream-deleted', streamName: stream })
        }
      })

      it('reports a passed deadline before an oversized append', async () => {
        const many = Array.from({ length: 30_000 }, (_, n) => made(n))
        const late = await failureOf(client.appendToStream(newStream(), many, { deadline: 1, ...options }))
        expect(late.type).to.equal('deadline-exceeded')
      })

      it('accepts one mebibyte of data, and no more', async () => {
        const of = (bytes: number) =>
          binaryEvent({ type: 'Blob', data: new Uint8Array(bytes), metadata: new Uint8Array(1000) })
        await client.appendToStream(newStream(), of(MEBIBYTE), options)
        const refusal = await failureOf(client.appendToStream(newStream(), of(MEBIBYTE + 1), options))
        expect(refusal).to.deep.include({ type: 'maximum-append-size-exceeded', maxAppendSize: MEBIBYTE })
      })

      it('accepts 16 mebibytes with metadata and types, and no more', async () => {
        const of = (bytes: number) =>
          binaryEvent({ type: 'Blob', data: new Uint8Array(1), metadata: new Uint8Array(bytes) })
        const many = Array.from({ length: 4 }, () => of(4 * MEBIBYTE))
        await client.appendToStream(newStream(), many.slice(1), options)
        const refusal = await failureOf(client.appendToStream(newStream(), many, options))
        expect(refusal.type).to.equal('maximum-append-size-exceeded')
      })

      it('refuses data that Postgres cannot store, without an effect on concurrent appends', async () => {
        const nul = jsonEvent({ type: 'NUL\0', data: {} })
        const stream = newStream()
        const [refused] = await Promise.all([
          failureOf(client.appendToStream(newStream(), nul, options)),
          client.appendToStream(stream, made(), options),
          failureOf(client.appendToStream('raw-\0', made(), options)),
        ])
        expect(refused.type).to.equal('unknown')
        expect(await revisionsOf(stream)).to.deep.equal([0])
      })

      it('stores binary data and metadata unchanged', async () => {
        const stream = newStream()
        const data = Uint8Array.from({ length: 256 }, (_, n) => n)
        await client.appendToStream(stream, binaryEvent({ type: 'Blob', data, metadata: data }), options)
        const [read] = await collect(client.readStream(stream))
        expect(read?.isJson).to.equal(false)
        expect(Buffer.from(read?.data as Uint8Array)).to.deep.equal(Buffer.from(data))
        expect(Buffer.from(read?.metadata as Uint8Array)).to.deep.equal(Buffer.from(data))
      })
    })

  describe('removing a stream', () => {
    it('hides a deleted stream until it is appended to, and then continues its revisions', async () => {
      const stream = newStream()
      await append(stream, 3)
      const deleted = await client.deleteStream(stream, { expectedRevision: 2n })
      expect(deleted.position?.commit).to.be.a('bigint')
      expect((await failureOf(collect(client.readStream(stream)))).type).to.equal('stream-not-found')
      expect((await append(stream, 2, 'no_stream')).nextExpectedRevision).to.equal(4n)
      expect(await revisionsOf(stream)).to.deep.equal([3, 4])
      expect(await revisionsOf(stream, { direction: 'backwards', fromRevision: 'end' })).to.deep.equal([4, 3])
    })

    it('refuses stream_exists on a deleted stream, but accepts its last revision', async () => {
      const stream = newStream()
      await append(stream, 2)
      await client.deleteStream(stream)
      expect((await failureOf(append(stream, 1, 'stream_exists'))).type).to.equal('stream-deleted')
      expect((await append(stream, 1, 1n)).nextExpectedRevision).to.equal(2n)
    })

    it('keeps deletions and tombstones after a restart', async () => {
      const [deleted, revived, tombstoned] = [newStream(), newStream(), newStream()]
      for (const stream of [deleted, revived, tombstoned]) await append(stream, 2)
      await client.deleteStream(deleted)
      await client.deleteStream(revived)
      await append(revived, 1)
      await client.tombstoneStream(tombstoned)
      await node.restart()
      const fresh = EventStoreDBClient.connectionString(node.address)
      expect((await failureOf(collect(fresh.readStream(deleted)))).type).to.equal('stream-not-found')
      expect((await collect(fresh.readStream(revived))).map(({ revision }) => revision)).to.deep.equal([2n])
      expect((await failureOf(collect(fresh.readStream(tombstoned)))).type).to.equal('stream-deleted')
      await fresh.dispose()
    })

    it('refuses to remove a stream at another revision', async () => {
      const stream = newStream()
      await append(stream, 2)
      for (const refusal of [
        await failureOf(client.deleteStream(stream, { expectedRevision: 7n })),
        await failureOf(client.tombstoneStream(stream, { expectedRevision: 0n })),
      ])
        expect(refusal).to.deep.include({ type: 'wrong-expected-version', actualVersion: 1n })
      expect(await revisionsOf(stream)).to.deep.equal([0, 1])
    })

    it('refuses reads, tombstones and metadata of a tombstoned stream', async () => {
      const stream = newStream()
      await append(stream, 2)
      await client.tombstoneStream(stream, { expectedRevision: 1n })
      expect(await failureOf(collect(client.readStream(stream)))).to.deep.include({
        type: 'stream-deleted',
        streamName: stream,
      })
      expect((await failureOf(client.tombstoneStream(stream))).type).to.equal('stream-deleted')
      expect((await failureOf(client.setStreamMetadata(stream, { maxCount: 1 }))).type).to.equal('stream-deleted')
    })
  })

  describe('the rest of the protocol', () => {
    it('supports discovery by gossip, as a cluster of one', async () => {
      const discovered = EventStoreDBClient.connectionString(node.address.replace('esdb:', 'esdb+discover:'))
      const stream = newStream()
      await discovered.appendToStream(stream, made())
      expect(await collect(discovered.readStream(stream))).to.have.length(1)
      await discovered.dispose()
    })

    it('reports that it has no persistent subscriptions and no projections', async () => {
      const refusal = await failureOf(client.createProjection('p', 'fromAll()'))
      expect(refusal.message).to.match(/UNIMPLEMENTED/)
      const settings = persistentSubscriptionToStreamSettingsFromDefaults()
      const persistent = await failureOf(client.createPersistentSubscriptionToStream('s', 'g', settings))
      expect(persistent.message).to.match(/UNIMPLEMENTED/)
    })
  })

  describe('the process', () => {
    const run = (...more: string[]) => runProgram([NODE.pathname, '--database-url', node.databaseUrl, ...more])

    it('refuses to be the second node of a database, in one sentence', async () => {
      const { code, stderr } = await run('--port', '0').exited
      expect(code).to.equal(1)
      expect(stderr).to.equal('Another event store node is running on this database; stop it first.\n')
    })

    it('reports a missing database or address in one sentence', async () => {
      const missing = await runProgram([NODE.pathname]).exited
      expect(missing).to.deep.equal({ code: 1, stderr: '--database-url is missing.\n' })
      const nowhere = await runProgram([NODE.pathname, '--database-url', 'postgres://127.0.0.1:1/none']).exited
      expect(nowhere.code).to.equal(1)
      expect(nowhere.stderr).to.match(/^The event store cannot start: [^\n]*\n$/)
    })

    it('fails appends while Postgres is down, and recovers when it is back', async () => {
      await append(newStream(), 1)
      await node.killPostgres()
      const outcomes: string[] = []
      const acknowledged: string[] = []
      await eventually(async () => {
        const stream = newStream()
        const outcome = await append(stream, 1, 'no_stream').then(
          () => 'appended',
          (error: Failure) => error.type,
        )
        outcomes.push(outcome)
        if (outcome === 'appended') acknowledged.push(stream)
        return outcome === 'appended' && outcomes.some(other => other !== 'appended')
      })
      for (const failed of outcomes.filter(one => one !== 'appended'))
        expect(failed).to.be.oneOf(['unavailable', 'unknown', 'deadline-exceeded'])
      for (const stream of acknowledged) expect(await revisionsOf(stream)).to.deep.equal([0])
    })
  })
})
