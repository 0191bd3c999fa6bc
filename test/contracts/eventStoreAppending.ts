import { expect } from 'chai'
import type { EventStore, NewEvent } from '../../src/ports.ts'
import { rejectionOf } from '../support/rejection.ts'
import { all, event, events, idsOf, newStream, revisionsOf } from './eventStoreFixtures.ts'

const WRITERS = 50

/** A stream that already holds `count` events, and those events. */
const given = async (store: EventStore, count: number): Promise<{ stream: string; recorded: NewEvent[] }> => {
  const stream = newStream()
  const recorded = events(count)
  if (count > 0) await store.append(stream, recorded, 'no_stream')
  return { stream, recorded }
}

const idsIn = async (store: EventStore, stream: string): Promise<string[]> => idsOf(await all(store.readStream(stream)))

export const describeAppending = (shared: () => EventStore): void => {
  describe('appending', () => {
    let store: EventStore
    before(() => {
      store = shared()
    })

    it('creates a stream that must not exist', async () => {
      const { stream } = await given(store, 0)
      const appended = await store.append(stream, [event()], 'no_stream')
      expect(appended).to.deep.include({ ok: true, revision: 0n })
    })

    it('appends after the current revision', async () => {
      const { stream } = await given(store, 3)
      expect(await store.append(stream, [event()], 2n)).to.deep.include({ ok: true, revision: 3n })
    })

    it('returns the revision and position of the last of several events', async () => {
      const { stream } = await given(store, 1)
      const appended = await store.append(stream, events(4), 0n)
      const last = (await all(store.readStream(stream))).at(-1)
      expect(appended).to.deep.equal({ ok: true, revision: 4n, position: last?.position })
    })

    it('refuses a revision that is beyond the current one, and names the current one', async () => {
      const { stream } = await given(store, 2)
      expect(await store.append(stream, [event()], 2n)).to.deep.equal({ ok: false, actual: 1n })
      expect(await store.append(stream, [event()], 99n)).to.deep.equal({ ok: false, actual: 1n })
    })

    it('refuses a revision of a stream that does not exist', async () => {
      const { stream } = await given(store, 0)
      expect(await store.append(stream, [event()], 0n)).to.deep.equal({ ok: false, actual: 'no_stream' })
      expect(await idsIn(store, stream)).to.deep.equal([])
    })

    it('refuses other events at a stale revision', async () => {
      const { stream, recorded } = await given(store, 3)
      expect(await store.append(stream, [event()], 0n)).to.deep.equal({ ok: false, actual: 2n })
      expect(await idsIn(store, stream)).to.deep.equal(idsOf(recorded))
    })

    it('refuses to create a stream that exists, with other ids', async () => {
      const { stream } = await given(store, 1)
      expect(await store.append(stream, [event()], 'no_stream')).to.deep.equal({ ok: false, actual: 0n })
    })

    it('returns the first result for a resent creation', async () => {
      const stream = newStream()
      const sent = events(2)
      const first = await store.append(stream, sent, 'no_stream')
      expect(await store.append(stream, sent, 'no_stream')).to.deep.equal(first)
      expect(await idsIn(store, stream)).to.deep.equal(idsOf(sent))
    })

    it('returns the first result for a resend at an exact revision', async () => {
      const { stream, recorded } = await given(store, 2)
      const sent = events(3)
      const first = await store.append(stream, sent, 1n)
      expect(await store.append(stream, sent, 1n)).to.deep.equal(first)
      expect(await idsIn(store, stream)).to.deep.equal(idsOf([...recorded, ...sent]))
    })

    it('returns the first result for a resend after later appends', async () => {
      const { stream } = await given(store, 2)
      const sent = events(2)
      const first = await store.append(stream, sent, 1n)
      await store.append(stream, events(5), 3n)
      expect(await store.append(stream, sent, 1n)).to.deep.equal(first)
    })

    it('recognizes a resend of the first events of a longer append', async () => {
      const { stream, recorded } = await given(store, 3)
      const resent = await store.append(stream, recorded.slice(0, 2), 'no_stream')
      expect(resent).to.deep.include({ ok: true, revision: 1n })
      expect(await idsIn(store, stream)).to.deep.equal(idsOf(recorded))
    })

    it('recognizes a resend by its ids alone, with any payload', async () => {
      const { stream, recorded } = await given(store, 1)
      const changed = recorded.map(({ id }) => ({ ...event({ other: true }, 'Other'), id }))
      expect(await store.append(stream, changed, 'no_stream')).to.deep.include({ ok: true, revision: 0n })
      expect((await all(store.readStream(stream)))[0]?.data).to.deep.equal({ n: 0 })
    })

    it('does not recognize a resend when only its first ids are stored', async () => {
      const { stream, recorded } = await given(store, 2)
      const mixed = [...recorded.slice(0, 1), event()]
      expect(await store.append(stream, mixed, 'no_stream')).to.deep.equal({ ok: false, actual: 1n })
      expect(await idsIn(store, stream)).to.deep.equal(idsOf(recorded))
    })

    it('does not recognize a resend that is longer than the stream', async () => {
      const { stream, recorded } = await given(store, 2)
      expect(await store.append(stream, [...recorded, event()], 'no_stream')).to.deep.equal({ ok: false, actual: 1n })
      expect(await idsIn(store, stream)).to.deep.equal(idsOf(recorded))
    })

    it('does not recognize a resend at another revision', async () => {
      const { stream, recorded } = await given(store, 3)
      expect(await store.append(stream, recorded.slice(2), 0n)).to.deep.equal({ ok: false, actual: 2n })
    })

    it('appends the same ids to another stream', async () => {
      const { recorded } = await given(store, 1)
      const other = newStream()
      expect(await store.append(other, recorded, 'no_stream')).to.deep.include({ ok: true, revision: 0n })
      expect(await idsIn(store, other)).to.deep.equal(idsOf(recorded))
    })

    it('accepts one of two concurrent creations', async () => {
      const stream = newStream()
      const outcomes = await Promise.all([1, 2].map(n => store.append(stream, [event({ n })], 'no_stream')))
      expect(outcomes.filter(({ ok }) => ok)).to.have.length(1)
      expect(outcomes.find(({ ok }) => !ok)).to.deep.equal({ ok: false, actual: 0n })
      expect(await idsIn(store, stream)).to.have.length(1)
    })

    it('accepts one of two concurrent appends', async () => {
      const { stream } = await given(store, 1)
      const outcomes = await Promise.all([1, 2].map(n => store.append(stream, events(2 + n), 0n)))
      expect(outcomes.filter(({ ok }) => ok)).to.have.length(1)
      const accepted = outcomes.find(({ ok }) => ok)
      expect(await idsIn(store, stream)).to.have.length(accepted?.ok === true ? Number(accepted.revision) + 1 : -1)
    })

    it('returns the same result for two concurrent appends of the same events', async () => {
      const stream = newStream()
      const sent = events(2)
      const [one, other] = await Promise.all([1, 2].map(() => store.append(stream, sent, 'no_stream')))
      expect(one).to.deep.equal(other)
      expect(one).to.deep.include({ ok: true, revision: 1n })
      expect(await idsIn(store, stream)).to.deep.equal(idsOf(sent))
    })

    it('gives each of fifty concurrent writers its own revision', async () => {
      const { stream } = await given(store, 1)
      const write = async (n: number): Promise<bigint> => {
        for (let expected = 0n; ; ) {
          const appended = await store.append(stream, [event({ n })], expected)
          if (appended.ok) return appended.revision
          if (appended.actual === 'no_stream') throw new Error('The stream no longer exists.')
          expected = appended.actual
        }
      }
      const revisions = await Promise.all(Array.from({ length: WRITERS }, (_, n) => write(n)))
      expect(new Set(revisions).size).to.equal(WRITERS)
      const written = await all(store.readStream(stream, { from: 1n }))
      expect(new Set(written.map(({ data }) => data['n'])).size).to.equal(WRITERS)
      expect(revisionsOf(written)).to.deep.equal(Array.from({ length: WRITERS }, (_, n) => BigInt(n + 1)))
    })

    it('appends all events or none', async () => {
      const { stream, recorded } = await given(store, 1)
      await store.append(stream, events(5), 7n)
      expect(await idsIn(store, stream)).to.deep.equal(idsOf(recorded))
      const five = events(5)
      await store.append(stream, five, 0n)
      expect(await idsIn(store, stream)).to.deep.equal(idsOf([...recorded, ...five]))
    })

    it('gives the events of one append increasing positions', async () => {
      const { stream } = await given(store, 20)
      const positions = (await all(store.readStream(stream))).map(({ position }) => position)
      expect(positions).to.deep.equal([...new Set(positions)].sort((a, b) => (a < b ? -1 : 1)))
    })

    it('refuses more than one mebibyte at once, and stores nothing of it', async () => {
      const { stream } = await given(store, 0)
      const large = [event({ text: 'x'.repeat(600_000) }), event({ text: 'y'.repeat(600_000) })]
      const refusal = await rejectionOf(store.append(stream, large, 'no_stream'))
      expect(refusal).to.have.property('type', 'maximum-append-size-exceeded')
      expect(await idsIn(store, stream)).to.deep.equal([])
    })

    it('moves the head of the log with every append', async () => {
      const before = await store.head()
      const appended = await store.append(newStream(), events(3), 'no_stream')
      const head = await store.head()
      expect(head > before).to.equal(true)
      expect(appended.ok && appended.position <= head).to.equal(true)
    })
  })
}
