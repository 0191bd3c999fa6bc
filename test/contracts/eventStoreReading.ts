import { expect } from 'chai'
import type { EventStore, JsonObject, NewEvent } from '../../src/ports.ts'
import { all, event, events, idsOf, newStream, revisionsOf } from './eventStoreFixtures.ts'

const LONG_STREAM_EVENTS = 500
const RECENT_MS = 60_000

const revisions = (from: number, to: number): bigint[] =>
  Array.from({ length: Math.abs(to - from) + 1 }, (_, n) => BigInt(from <= to ? from + n : from - n))

export const describeReading = (shared: () => EventStore): void => {
  describe('reading a stream', () => {
    let store: EventStore
    let long: string
    let recorded: NewEvent[]

    before(async () => {
      store = shared()
      long = newStream()
      recorded = events(LONG_STREAM_EVENTS)
      await store.append(long, recorded, 'no_stream')
    })

    it('yields nothing for a stream that does not exist', async () => {
      expect(await all(store.readStream(newStream()))).to.deep.equal([])
      expect(await all(store.readStream(newStream(), { direction: 'backwards' }))).to.deep.equal([])
    })

    it('yields every event in order from the first', async () => {
      const read = await all(store.readStream(long))
      expect(idsOf(read)).to.deep.equal(idsOf(recorded))
      expect(revisionsOf(read)).to.deep.equal(revisions(0, LONG_STREAM_EVENTS - 1))
    })

    it('yields every event in reverse from the last', async () => {
      const read = await all(store.readStream(long, { direction: 'backwards' }))
      expect(idsOf(read)).to.deep.equal(idsOf(recorded).toReversed())
    })

    it('begins with the given revision, forwards', async () => {
      const read = await all(store.readStream(long, { from: 400n }))
      expect(revisionsOf(read)).to.deep.equal(revisions(400, LONG_STREAM_EVENTS - 1))
    })

    it('begins with the given revision, backwards', async () => {
      const read = await all(store.readStream(long, { from: 30n, direction: 'backwards' }))
      expect(revisionsOf(read)).to.deep.equal(revisions(30, 0))
    })

    it('yields no more than the limit, forwards', async () => {
      expect(revisionsOf(await all(store.readStream(long, { limit: 70 })))).to.deep.equal(revisions(0, 69))
      expect(revisionsOf(await all(store.readStream(long, { from: 5n, limit: 1 })))).to.deep.equal([5n])
    })

    it('yields no more than the limit, backwards', async () => {
      const read = await all(store.readStream(long, { direction: 'backwards', limit: 3 }))
      expect(revisionsOf(read)).to.deep.equal([499n, 498n, 497n])
    })

    it('yields nothing for a limit of zero', async () => {
      expect(await all(store.readStream(long, { limit: 0 }))).to.deep.equal([])
    })

    it('pages through a stream without a gap or a duplicate', async () => {
      const read: bigint[] = []
      for (let from = 0n; from < LONG_STREAM_EVENTS; from += 37n)
        read.push(...revisionsOf(await all(store.readStream(long, { from, limit: 37 }))))
      expect(read).to.deep.equal(revisions(0, LONG_STREAM_EVENTS - 1))
    })

    it('yields nothing from a revision beyond the end, forwards', async () => {
      expect(await all(store.readStream(long, { from: BigInt(LONG_STREAM_EVENTS) }))).to.deep.equal([])
      expect(await all(store.readStream(long, { from: 1_000_000n }))).to.deep.equal([])
    })

    it('begins with the last event for a revision beyond the end, backwards', async () => {
      const read = await all(store.readStream(long, { from: 1_000_000n, direction: 'backwards', limit: 2 }))
      expect(revisionsOf(read)).to.deep.equal([499n, 498n])
    })

    it('reads an event as soon as it is acknowledged', async () => {
      const stream = newStream()
      for (let n = 0; n < 20; n += 1) {
        const added = event({ n })
        await store.append(stream, [added], n === 0 ? 'no_stream' : BigInt(n - 1))
        expect(idsOf(await all(store.readStream(stream, { from: BigInt(n) })))).to.deep.equal([added.id])
        expect(await all(store.readStream(stream, { from: BigInt(n + 1) }))).to.deep.equal([])
      }
    })

    it('may be ended early, and the next read works', async () => {
      for await (const { revision } of store.readStream(long)) if (revision === 3n) break
      expect(await all(store.readStream(long, { limit: 2 }))).to.have.length(2)
    })

    it('ends at its signal', async () => {
      const stopping = new AbortController()
      const reading = (async () => {
        for await (const { revision } of store.readStream(long, { signal: stopping.signal }))
          if (revision === 10n) stopping.abort()
      })()
      const outcome = await reading.then(
        () => 'read to the end',
        () => 'aborted',
      )
      expect(outcome).to.equal('aborted')
    })

    it('returns every field as it was appended', async () => {
      const stream = newStream()
      const data: JsonObject = {
        text: 'Größe 🧾 \u2028 "quoted" \\ \t',
        nested: { list: [1, 2.5, -0.125, null, true, [], {}], empty: {} },
        amount: '9007199254740993',
      }
      const sent = { ...event(data, 'Grüße.v2'), metadata: { tenant: 'acmé', deep: { er: ['x'] } } }
      const appended = await store.append(stream, [sent], 'no_stream')
      const [read] = await all(store.readStream(stream))
      expect(read).to.deep.include({ ...sent, stream, revision: 0n })
      expect(read?.position).to.equal(appended.ok ? appended.position : undefined)
      expect(read?.storedAt).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(Math.abs(Date.now() - Date.parse(read?.storedAt ?? ''))).to.be.lessThan(RECENT_MS)
    })

    it('returns empty data and metadata', async () => {
      const stream = newStream()
      await store.append(stream, [event({})], 'no_stream')
      expect((await all(store.readStream(stream)))[0]).to.deep.include({ data: {}, metadata: {} })
    })

    it('returns large data', async () => {
      const stream = newStream()
      const text = 'å'.repeat(400_000)
      await store.append(stream, [event({ text })], 'no_stream')
      expect((await all(store.readStream(stream)))[0]?.data).to.deep.equal({ text })
    })

    it('keeps streams with unusual names apart', async () => {
      const names = [newStream(), newStream()].flatMap(name => [`${name}/ä b%2F'"`, `${name}/Ä b%2F'"`])
      for (const [n, name] of names.entries()) await store.append(name, [event({ n })], 'no_stream')
      for (const [n, name] of names.entries()) {
        const read = await all(store.readStream(name))
        expect(read.map(({ data, stream }) => ({ data, stream }))).to.deep.equal([{ data: { n }, stream: name }])
      }
    })
  })
}
