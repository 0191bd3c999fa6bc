import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  EventStoreDBClient,
  type AllStreamSubscription,
  type AppendExpectedRevision,
  type Filter,
  type JSONEventType,
  type ResolvedEvent,
  binaryEvent,
  eventTypeFilter,
  jsonEvent,
  streamNameFilter,
} from '@eventstore/db-client'
import { expect } from 'chai'
import { type TestNode, startTestNode } from './eventStoreNode.ts'
import { endPrograms, runProgram, until } from './processes.ts'
import { NODE } from './eventStoreNode.ts'

const MEBIBYTE = 1024 * 1024
/** Passing credentials makes the client use the plain `Append` call. */
const plain = { credentials: { username: 'admin', password: 'unused' } }

type Failure = { readonly type: string; readonly actualVersion?: unknown; readonly streamName?: string }

const failureOf = async (work: Promise<unknown>): Promise<Failure> => {
  const failure = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(failure).to.be.instanceOf(Error)
  return failure as Failure
}

const made = (n = 0, type = 'Made') => jsonEvent<JSONEventType>({ id: randomUUID(), type, data: { n } })
const newStream = (category = 'raw'): string => `${category}-${randomUUID()}`

type Resolved = { readonly event?: NonNullable<ResolvedEvent['event']> }

const collect = async (reading: AsyncIterable<Resolved>): Promise<NonNullable<ResolvedEvent['event']>[]> => {
  const collected: NonNullable<ResolvedEvent['event']>[] = []
  for await (const { event } of reading) if (event !== undefined) collected.push(event)
  return collected
}

describe('the embedded event store node, by its protocol', function () {
  this.timeout(30_000)
  let node: TestNode
  let client: EventStoreDBClient

  const append = (stream: string, count: number, expectedRevision: AppendExpectedRevision = 'any') =>
    client.appendToStream(
      stream,
      Array.from({ length: count }, (_, n) => made(n)),
      { expectedRevision },
    )
  const revisionsOf = async (stream: string, options = {}): Promise<number[]> =>
    (await collect(client.readStream(stream, options))).map(({ revision }) => Number(revision))

  before(async () => {
    node = await startTestNode()
    client = EventStoreDBClient.connectionString(node.address)
  })
  after(async () => {
    await client.dispose()
    await node.stop()
    await endPrograms()
  })

  for (const [call, options] of [
    ['BatchAppend', {}],
    ['Append', plain],
  ] as const)
    describe(call, () => {
      it('answers with revision and position', async () => {
        const stream = newStream()
        const first = await client.appendToStream(stream, [made(), made()], {
          expectedRevision: 'no_stream',
          ...options,
        })
        const second = await client.appendToStream(stream, made(), { expectedRevision: 1n, ...options })
        expect([first.nextExpectedRevision, second.nextExpectedRevision]).to.deep.equal([1n, 2n])
        expect(second.position?.commit).to.equal((first.position?.commit ?? 0n) + 1n)
        expect(second.position?.prepare).to.equal(second.position?.commit)
      })

      it('names the current revision when another was expected', async () => {
        const stream = newStream()
        await append(stream, 3)
        const stale = await failureOf(client.appendToStream(stream, made(), { expectedRevision: 0n, ...options }))
        expect(stale).to.deep.include({ type: 'wrong-expected-version', actualVersion: 2n, streamName: stream })
        const missing = await failureOf(
          client.appendToStream(newStream(), made(), { expectedRevision: 5n, ...options }),
        )
        expect(missing).to.deep.include({ type: 'wrong-expected-version', actualVersion: 'no_stream' })
      })

      it('appends in any state, and recognises a resend', async () => {
        const stream = newStream()
        const sent = [made(1), made(2)]
        const first = await client.appendToStream(stream, sent, { expectedRevision: 'any', ...options })
        await append(stream, 2)
        expect(await client.appendToStream(stream, sent, { expectedRevision: 'any', ...options })).to.deep.equal(first)
        expect(await revisionsOf(stream)).to.deep.equal([0, 1, 2, 3])
      })

      it('asks for an existing stream when told to', async () => {
        const stream = newStream()
        const missing = await failureOf(
          client.appendToStream(stream, made(), { expectedRevision: 'stream_exists', ...options }),
        )
        expect(missing.type).to.equal('wrong-expected-version')
        await append(stream, 1)
        const appended = await client.appendToStream(stream, made(), { expectedRevision: 'stream_exists', ...options })
        expect(appended.nextExpectedRevision).to.equal(1n)
      })

      it('refuses a tombstoned stream, whatever is expected', async () => {
        const stream = newStream()
        await append(stream, 1)
        await client.tombstoneStream(stream)
        for (const expectedRevision of ['any', 'no_stream', 'stream_exists', 0n] as const) {
          const refusal = await failureOf(client.appendToStream(stream, made(), { expectedRevision, ...options }))
          expect(refusal).to.deep.include({ type: 'stream-deleted', streamName: stream })
        }
      })

      it('takes one mebibyte, and no more', async () => {
        const of = (bytes: number) => binaryEvent({ type: 'Blob', data: new Uint8Array(bytes) })
        await client.appendToStream(newStream(), of(MEBIBYTE - 4), options)
        const refusal = await failureOf(client.appendToStream(newStream(), of(MEBIBYTE), options))
        expect(refusal).to.deep.include({ type: 'maximum-append-size-exceeded', maxAppendSize: MEBIBYTE })
      })

      it('refuses what Postgres cannot hold, without harm to the appends beside it', async () => {
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

      it('keeps binary data and metadata byte by byte', async () => {
        const stream = newStream()
        const data = Uint8Array.from({ length: 256 }, (_, n) => n)
        await client.appendToStream(stream, binaryEvent({ type: 'Blob', data, metadata: data }), options)
        const [read] = await collect(client.readStream(stream))
        expect(read?.isJson).to.equal(false)
        expect(Buffer.from(read?.data as Uint8Array)).to.deep.equal(Buffer.from(data))
        expect(Buffer.from(read?.metadata as Uint8Array)).to.deep.equal(Buffer.from(data))
      })
    })

  describe('reading', () => {
    it('says that a missing stream is not found', async () => {
      const stream = newStream()
      expect(await failureOf(collect(client.readStream(stream)))).to.deep.include({
        type: 'stream-not-found',
        streamName: stream,
      })
    })

    it('reads $all backwards from the end and from a position, exclusively', async () => {
      const { position } = await append(newStream(), 5)
      const commit = position?.commit ?? 0n
      const last = await collect(client.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 3 }))
      expect(last.map(event => event.position?.commit)).to.deep.equal([commit, commit - 1n, commit - 2n])
      const below = await collect(
        client.readAll({ direction: 'backwards', fromPosition: { commit, prepare: commit }, maxCount: 2 }),
      )
      expect(below.map(event => event.position?.commit)).to.deep.equal([commit - 1n, commit - 2n])
    })

    it('reads $all forwards from a position, inclusively, and from the start without a gap', async () => {
      const { position } = await append(newStream(), 3)
      const commit = position?.commit ?? 0n
      const from = await collect(client.readAll({ fromPosition: { commit: commit - 1n, prepare: commit - 1n } }))
      expect(from.map(event => event.position?.commit)).to.deep.equal([commit - 1n, commit])
      const whole = await collect(client.readAll())
      expect(whole.map(event => Number(event.position?.commit))).to.deep.equal(
        Array.from({ length: Number(commit) }, (_, n) => n + 1),
      )
    })
  })

  describe('removing a stream', () => {
    it('hides a deleted stream until it is appended to, and then goes on counting', async () => {
      const stream = newStream()
      await append(stream, 3)
      const deleted = await client.deleteStream(stream, { expectedRevision: 2n })
      expect(deleted.position?.commit).to.be.a('bigint')
      expect((await failureOf(collect(client.readStream(stream)))).type).to.equal('stream-not-found')
      expect((await append(stream, 2, 'no_stream')).nextExpectedRevision).to.equal(4n)
      expect(await revisionsOf(stream)).to.deep.equal([3, 4])
      expect(await revisionsOf(stream, { direction: 'backwards', fromRevision: 'end' })).to.deep.equal([4, 3])
    })

    it('refuses stream_exists on a deleted stream, but takes its last revision', async () => {
      const stream = newStream()
      await append(stream, 2)
      await client.deleteStream(stream)
      expect((await failureOf(append(stream, 1, 'stream_exists'))).type).to.equal('wrong-expected-version')
      expect((await append(stream, 1, 1n)).nextExpectedRevision).to.equal(2n)
    })

    it('remembers deletions and tombstones over a restart', async () => {
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

    it('refuses to remove a stream that is at another revision', async () => {
      const stream = newStream()
      await append(stream, 2)
      for (const refusal of [
        await failureOf(client.deleteStream(stream, { expectedRevision: 7n })),
        await failureOf(client.tombstoneStream(stream, { expectedRevision: 0n })),
      ])
        expect(refusal).to.deep.include({ type: 'wrong-expected-version', actualVersion: 1n })
      expect(await revisionsOf(stream)).to.deep.equal([0, 1])
    })

    it('ends a tombstoned stream for every reader', async () => {
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

  describe('stream metadata', () => {
    it('is kept in a stream of its own, of which only the newest event shows', async () => {
      const stream = newStream()
      await client.setStreamMetadata(stream, { maxCount: 3, cacheControl: 60, owner: 'me' })
      await client.setStreamMetadata(stream, { maxCount: 2, cacheControl: 60, owner: 'you' })
      expect((await client.getStreamMetadata(stream)).metadata).to.deep.equal({
        maxCount: 2,
        cacheControl: 60,
        owner: 'you',
      })
      expect(await revisionsOf(`$$${stream}`)).to.deep.equal([1])
    })

    it('shows no more than $maxCount events', async () => {
      const stream = newStream()
      await append(stream, 10)
      await client.setStreamMetadata(stream, { maxCount: 3 })
      expect(await revisionsOf(stream)).to.deep.equal([7, 8, 9])
      expect(await revisionsOf(stream, { direction: 'backwards', fromRevision: 'end' })).to.deep.equal([9, 8, 7])
      await append(stream, 1)
      expect(await revisionsOf(stream)).to.deep.equal([8, 9, 10])
    })

    it('hides what is older than $maxAge', async () => {
      const stream = newStream()
      await append(stream, 2)
      await client.setStreamMetadata(stream, { maxAge: 1 })
      await sleep(1100)
      await append(stream, 1)
      expect(await revisionsOf(stream)).to.deep.equal([2])
    })

    it('hides what lies before $tb, but not from $all', async () => {
      const stream = newStream()
      const { position } = await append(stream, 5)
      await client.setStreamMetadata(stream, { truncateBefore: 3 })
      expect(await revisionsOf(stream)).to.deep.equal([3, 4])
      const commit = (position?.commit ?? 0n) - 4n
      const all = await collect(client.readAll({ fromPosition: { commit, prepare: commit }, maxCount: 5 }))
      expect(all.map(({ streamId }) => streamId)).to.deep.equal(Array.from({ length: 5 }, () => stream))
    })

    it('is obeyed at once, also by readers of a stream that is in memory', async () => {
      const stream = newStream()
      await append(stream, 4)
      expect(await revisionsOf(stream)).to.have.length(4)
      await client.setStreamMetadata(stream, { truncateBefore: 2 })
      expect(await revisionsOf(stream)).to.deep.equal([2, 3])
    })
  })

  describe('subscribing', () => {
    const open: { unsubscribe(): Promise<void> }[] = []
    afterEach(async () => {
      for (const subscription of open.splice(0)) await subscription.unsubscribe()
    })

    const follow = (subscription: AllStreamSubscription) => {
      const got: string[] = []
      open.push(subscription)
      subscription.on('error', () => undefined)
      subscription.on('data', ({ event }) => void (event !== undefined && got.push(event.id)))
      return got
    }
    const filtered = (filter: Filter) => follow(client.subscribeToAll({ filter }))

    it('goes on behind a revision of a stream', async () => {
      const stream = newStream()
      await append(stream, 5)
      const got: bigint[] = []
      const subscription = client.subscribeToStream(stream, { fromRevision: 2n })
      open.push(subscription)
      subscription.on('data', ({ event }) => void (event !== undefined && got.push(event.revision)))
      await until(() => got.length === 2)
      await append(stream, 2)
      await until(() => got.length === 4)
      expect(got).to.deep.equal([3n, 4n, 5n, 6n])
    })

    it('waits for a stream that does not exist yet', async () => {
      const stream = newStream()
      const got: bigint[] = []
      const subscription = client.subscribeToStream(stream)
      open.push(subscription)
      subscription.on('data', ({ event }) => void (event !== undefined && got.push(event.revision)))
      await append(stream, 2)
      await until(() => got.length === 2)
      expect(got).to.deep.equal([0n, 1n])
    })

    it('reports a stream that is tombstoned', async () => {
      const stream = newStream()
      await append(stream, 1)
      await client.tombstoneStream(stream)
      const refusal = await failureOf(collect(client.subscribeToStream(stream)))
      expect(refusal.type).to.equal('stream-deleted')
    })

    it('delivers $all from the end, from a position, and from the start', async () => {
      const fromEnd = follow(client.subscribeToAll({ fromPosition: 'end' }))
      const before = await append(newStream(), 3)
      const commit = before.position?.commit ?? 0n
      const fromPosition = follow(client.subscribeToAll({ fromPosition: { commit, prepare: commit } }))
      const fromStart = follow(client.subscribeToAll())
      await until(() => fromEnd.length === 3)
      await append(newStream(), 2)
      await until(() => fromPosition.length === 2)
      await until(() => fromStart.length === Number(commit) + 2)
      expect(fromStart.slice(-2)).to.deep.equal(fromPosition)
      expect(fromStart.slice(-5)).to.deep.equal(fromEnd)
    })

    it('filters by regex and by prefix, on streams and on types', async () => {
      const category = `f${randomUUID().slice(0, 8)}`
      const [red, blue] = [made(1, `${category}Red`), made(2, `${category}Blue`)]
      const byPrefix = filtered(streamNameFilter({ prefixes: [`${category}a-`, `${category}b-`] }))
      const byRegex = filtered(streamNameFilter({ regex: `^${category}[bc]-` }))
      const byType = filtered(eventTypeFilter({ prefixes: [`${category}R`] }))
      const byTypeRegex = filtered(eventTypeFilter({ regex: `^${category}.*ue$` }))
      await client.appendToStream(newStream(`${category}a`), red)
      await client.appendToStream(newStream(`${category}b`), blue)
      await until(
        () => byPrefix.length === 2 && byRegex.length === 1 && byType.length === 1 && byTypeRegex.length === 1,
      )
      expect(byPrefix).to.deep.equal([red.id, blue.id])
      expect([byRegex, byType, byTypeRegex]).to.deep.equal([[blue.id], [red.id], [blue.id]])
    })

    it('gives checkpoints at the interval asked for while nothing matches', async () => {
      const checkpoints: bigint[] = []
      const { position } = await append(newStream(), 1)
      const start = position?.commit ?? 0n
      const filter = streamNameFilter({
        prefixes: ['none-'],
        maxSearchWindow: 10,
        checkpointInterval: 2,
        checkpointReached: (_, { commit }) => void checkpoints.push(commit),
      })
      await append(newStream(), 100)
      follow(client.subscribeToAll({ filter, fromPosition: { commit: start, prepare: start } }))
      await until(() => checkpoints.length >= 5)
      expect(checkpoints).to.deep.equal([20n, 40n, 60n, 80n, 100n].map(offset => start + offset))
    })

    it('refuses a regex that cannot be read', async () => {
      const refusal = await failureOf(collect(client.subscribeToAll({ filter: streamNameFilter({ regex: '(' }) })))
      expect(refusal.type).to.equal('unknown')
    })
  })

  describe('the rest of the protocol', () => {
    it('is found through gossip, as a cluster of one', async () => {
      const discovered = EventStoreDBClient.connectionString(node.address.replace('esdb:', 'esdb+discover:'))
      const stream = newStream()
      await discovered.appendToStream(stream, made())
      expect(await collect(discovered.readStream(stream))).to.have.length(1)
      await discovered.dispose()
    })

    it('says that it has no persistent subscriptions and no projections', async () => {
      const refusal = await failureOf(client.createProjection('p', 'fromAll()'))
      expect(String(refusal)).to.match(/UNIMPLEMENTED/)
      const settings = { resolveLinkTos: false } as Parameters<typeof client.createPersistentSubscriptionToStream>[2]
      const persistent = await failureOf(client.createPersistentSubscriptionToStream('s', 'g', settings))
      expect(String(persistent)).to.match(/UNIMPLEMENTED/)
    })
  })

  describe('the process', () => {
    const run = (...more: string[]) => runProgram([NODE.pathname, '--database-url', node.databaseUrl, ...more])

    it('refuses to be the second node on a database, in one sentence', async () => {
      const { code, stderr } = await run('--port', '0').exited
      expect(code).to.equal(1)
      expect(stderr).to.equal('Another event store node is running on this database; stop it first.\n')
    })

    it('says in one sentence that it lacks its database or its address', async () => {
      const missing = await runProgram([NODE.pathname]).exited
      expect(missing).to.deep.equal({ code: 1, stderr: '--database-url is missing.\n' })
      const nowhere = await runProgram([NODE.pathname, '--database-url', 'postgres://127.0.0.1:1/none']).exited
      expect(nowhere.code).to.equal(1)
      expect(nowhere.stderr).to.match(/^The event store cannot start: [^\n]*\n$/)
    })

    it('fails appends while Postgres is gone, and recovers when it is back', async () => {
      await append(newStream(), 1)
      process.kill(node.postgresPid(), 'SIGKILL')
      const outcomes: string[] = []
      const stream = newStream()
      const sent = made()
      await until(async () => {
        const outcome = await client.appendToStream(stream, sent, { expectedRevision: 'no_stream' }).then(
          () => 'appended',
          (error: Failure) => error.type,
        )
        outcomes.push(outcome)
        return outcome === 'appended'
      }, 20_000)
      expect(new Set(outcomes.slice(0, -1))).to.deep.equal(new Set(['unavailable']))
      expect(await revisionsOf(stream)).to.deep.equal([0])
    })
  })
})
