import { randomUUID } from 'node:crypto'
import {
  type EventStoreDBClient,
  type AllStreamSubscription,
  type Filter,
  eventTypeFilter,
  streamNameFilter,
} from '@eventstore/db-client'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { expect } from 'chai'
import { eventMessage, streamName, uuidText } from '../../src/embedded/eventstore/protocol/messages.ts'
import { type Raw, collect, failureOf, made, newStream, startRaw } from './rawEventStoreClient.ts'
import { eventually } from '../support/eventually.ts'

describe('embedded event store: reading and subscribing', () => {
  let client: EventStoreDBClient
  let append: Raw['append']
  let revisionsOf: Raw['revisionsOf']
  let stop: Raw['stop']

  before(async () => {
    ;({ client, append, revisionsOf, stop } = await startRaw())
  })
  after(() => stop())

  describe('the encoding of an event', () => {
    const record = {
      position: 9_007_199_254_740_993n,
      stream: 'räd-1',
      revision: 9_223_372_036_854_775_807n,
      id: 'ff0102ac-0304-4506-8708-090a0b0c0d0e',
      type: 'Größe',
      isJson: true,
      data: Buffer.from(JSON.stringify({ text: 'x'.repeat(20_000) })),
      metadata: Buffer.alloc(0),
      createdTicks: 17_952_306_410_549_183n,
    }

    for (const form of ['string', 'structured'] as const)
      it(`is valid by the protocol's definitions, with the id as ${form}`, () => {
        const event = streams.ReadResp.deserializeBinary(eventMessage(record, form).serializeBinary()).getEvent()
        const recorded = event?.getEvent()
        expect(event?.getCommitPosition()).to.equal(record.position.toString())
        expect(recorded?.getId()?.hasStructured()).to.equal(form === 'structured')
        expect(uuidText(recorded?.getId())).to.equal(record.id)
        expect(streamName(recorded?.getStreamIdentifier())).to.equal(record.stream)
        expect(recorded?.getStreamRevision()).to.equal(record.revision.toString())
        expect(recorded?.getPreparePosition()).to.equal(record.position.toString())
        expect(Object.fromEntries(recorded?.getMetadataMap().toObject() ?? [])).to.deep.equal({
          type: record.type,
          created: record.createdTicks.toString(),
          'content-type': 'application/json',
        })
        expect(Buffer.from(recorded?.getData_asU8() ?? [])).to.deep.equal(record.data)
        expect(recorded?.getCustomMetadata_asU8()).to.have.length(0)
      })
  })

  describe('reading', () => {
    it('reports a missing stream as not found', async () => {
      const stream = newStream()
      expect(await failureOf(collect(client.readStream(stream)))).to.deep.include({
        type: 'stream-not-found',
        streamName: stream,
      })
    })

    /** The positions of a stream's events, oldest first. */
    const positionsIn = async (stream: string) =>
      (await collect(client.readStream(stream))).flatMap(({ position }) => (position === undefined ? [] : [position]))

    it('reads $all backwards from the end and from a position, exclusively', async () => {
      const stream = newStream()
      await append(stream, 5)
      const positions = (await positionsIn(stream)).toReversed()
      const last = await collect(client.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 3 }))
      expect(last.map(event => event.position)).to.deep.equal(positions.slice(0, 3))
      const fromPosition = positions[0] ?? 'end'
      const below = await collect(client.readAll({ direction: 'backwards', fromPosition, maxCount: 2 }))
      expect(below.map(event => event.position)).to.deep.equal(positions.slice(1, 3))
    })

    it('begins $all with the system events of a fresh server', async () => {
      const first = await collect(client.readAll({ maxCount: 4 }))
      expect(first.map(({ type }) => type)).to.deep.equal(Array.from({ length: 4 }, () => '$metadata'))
      expect(first[0]).to.deep.include({ revision: 0n, position: { commit: 167n, prepare: 167n } })
      expect(first.every(({ streamId }) => streamId.startsWith('$$$'))).to.equal(true)
    })

    it('refuses to read $all from a position at which no event begins', async () => {
      const { position } = await append(newStream(), 2)
      const commit = (position?.commit ?? 0n) - 1n
      for (const direction of ['forwards', 'backwards'] as const) {
        const reading = client.readAll({ direction, fromPosition: { commit, prepare: commit }, maxCount: 1 })
        const refusal = await failureOf(collect(reading))
        expect(refusal).to.have.property('type', 'unknown')
        expect(refusal.message).to.match(/UNKNOWN: Unexpected ReadAllResult: Error/)
      }
    })

    it('reads $all forwards from a position, inclusively, and from the start in the order of the log', async () => {
      const stream = newStream()
      await append(stream, 3)
      const positions = await positionsIn(stream)
      const from = await collect(client.readAll({ fromPosition: positions[1] ?? 'end' }))
      expect(from.map(event => event.position)).to.deep.equal(positions.slice(1))
      const whole = (await collect(client.readAll())).map(event => event.position?.commit ?? 0n)
      expect(whole.every((position, n) => n === 0 || position > (whole[n - 1] ?? position))).to.equal(true)
      expect(whole.slice(-3)).to.deep.equal(positions.map(({ commit }) => commit))
    })
  })

  describe('stream metadata', () => {
    it('is in a stream of its own, of which only the newest event is visible', async () => {
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

    it('limits the stream to $maxCount events', async () => {
      const stream = newStream()
      await append(stream, 10)
      await client.setStreamMetadata(stream, { maxCount: 3 })
      expect(await revisionsOf(stream)).to.deep.equal([7, 8, 9])
      expect(await revisionsOf(stream, { direction: 'backwards', fromRevision: 'end' })).to.deep.equal([9, 8, 7])
      await append(stream, 1)
      expect(await revisionsOf(stream)).to.deep.equal([8, 9, 10])
    })

    it('hides events older than $maxAge', async () => {
      const stream = newStream()
      await append(stream, 2)
      await client.setStreamMetadata(stream, { maxAge: 1 })
      await eventually(async () => (await revisionsOf(stream)).length === 0)
      // On a busy machine the new event may be older than a second when it is read.
      let newest = 1
      await eventually(async () => {
        await append(stream, 1)
        newest += 1
        const visible = await revisionsOf(stream)
        expect(visible).not.to.include.oneOf([0, 1])
        return visible.at(-1) === newest
      })
    })

    it('hides events before $tb, but not from $all', async () => {
      const stream = newStream()
      await append(stream, 5)
      const [first] = await collect(client.readStream(stream))
      await client.setStreamMetadata(stream, { truncateBefore: 3 })
      expect(await revisionsOf(stream)).to.deep.equal([3, 4])
      const all = await collect(client.readAll({ fromPosition: first?.position ?? 'end', maxCount: 5 }))
      expect(all.map(({ streamId }) => streamId)).to.deep.equal(Array.from({ length: 5 }, () => stream))
    })

    it('takes effect at once, also for readers of a cached stream', async () => {
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

    it('continues after a revision of a stream', async () => {
      const stream = newStream()
      await append(stream, 5)
      const got: bigint[] = []
      const subscription = client.subscribeToStream(stream, { fromRevision: 2n })
      open.push(subscription)
      subscription.on('data', ({ event }) => void (event !== undefined && got.push(event.revision)))
      await eventually(() => got.length === 2)
      await append(stream, 2)
      await eventually(() => got.length === 4)
      expect(got).to.deep.equal([3n, 4n, 5n, 6n])
    })

    it('waits for a stream that does not exist yet', async () => {
      const stream = newStream()
      const got: bigint[] = []
      const subscription = client.subscribeToStream(stream)
      open.push(subscription)
      subscription.on('data', ({ event }) => void (event !== undefined && got.push(event.revision)))
      await append(stream, 2)
      await eventually(() => got.length === 2)
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
      await eventually(() => fromEnd.length === 3)
      const count = (await collect(client.readAll())).length
      await append(newStream(), 2)
      await eventually(() => fromPosition.length === 2)
      await eventually(() => fromStart.length === count + 2)
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
      await eventually(
        () => byPrefix.length === 2 && byRegex.length === 1 && byType.length === 1 && byTypeRegex.length === 1,
      )
      expect(byPrefix).to.deep.equal([red.id, blue.id])
      expect([byRegex, byType, byTypeRegex]).to.deep.equal([[blue.id], [red.id], [blue.id]])
    })

    it('sends checkpoints at the requested interval while nothing matches', async () => {
      const checkpoints: bigint[] = []
      const { position } = await append(newStream(), 1)
      const start = position?.commit ?? 0n
      const filter = streamNameFilter({
        prefixes: ['none-'],
        maxSearchWindow: 10,
        checkpointInterval: 2,
        checkpointReached: (_, { commit }) => void checkpoints.push(commit),
      })
      const stream = newStream()
      await append(stream, 100)
      const positions = (await collect(client.readStream(stream))).map(event => event.position?.commit)
      follow(client.subscribeToAll({ filter, fromPosition: { commit: start, prepare: start } }))
      await eventually(() => checkpoints.length >= 5)
      expect(checkpoints).to.deep.equal([19, 39, 59, 79, 99].map(n => positions[n]))
    })

    it('refuses an invalid regex', async () => {
      const refusal = await failureOf(collect(client.subscribeToAll({ filter: streamNameFilter({ regex: '(' }) })))
      expect(refusal.type).to.equal('unknown')
    })
  })
})
