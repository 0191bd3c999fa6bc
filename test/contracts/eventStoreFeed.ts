import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { type EventStore, type StoredEvent, Unavailable } from '../../src/ports.ts'
import { holdsInOneOf } from '../support/comparedTimes.ts'
import { rejectionOf } from '../support/rejection.ts'
import { all, caughtUp, event, events, feed, idsOf, newCategory, newStream } from './eventStoreFixtures.ts'

const CATCH_UP_EVENTS = 2000
const LATENCY_SAMPLES = 20
const LATENCY_MEDIAN_MAX_MS = 250
/** A subscription that ignores its signal would never end. */
const STOPPED_MAX_MS = 120_000

const positionsOf = (list: readonly StoredEvent[]): bigint[] => list.map(({ position }) => position)
const isIncreasing = (positions: readonly bigint[]): boolean =>
  positions.every((position, n) => n === 0 || position > (positions[n - 1] ?? 0n))

/** Nine events in three streams of one category; resolves with their ids in the order of the log. */
const givenLog = async (store: EventStore, category: string): Promise<string[]> => {
  const streams = [newStream(category), newStream(category), newStream(category)]
  const ids: string[] = []
  for (let n = 0; n < 9; n += 1) {
    const added = event({ n })
    const revision = Math.floor(n / 3)
    await store.append(streams[n % 3] ?? '', [added], revision === 0 ? 'no_stream' : BigInt(revision - 1))
    ids.push(added.id)
  }
  return ids
}

export const describeFeed = (shared: () => EventStore): void => {
  describe('subscribing', () => {
    let store: EventStore
    before(() => {
      store = shared()
    })

    it('delivers the history in the order of the log, then reports that it is live', async () => {
      const category = newCategory()
      const ids = await givenLog(store, category)
      const received = feed(store, { after: 'start', categories: [category] })
      await received.until(caughtUp)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal(ids)
      expect(isIncreasing(positionsOf(received.events))).to.equal(true)
      expect(received.items.findIndex(({ kind }) => kind === 'caught_up')).to.be.greaterThan(
        received.items.findLastIndex(({ kind }) => kind === 'event'),
      )
    })

    it('delivers events that are appended later', async () => {
      const category = newCategory()
      const received = feed(store, { after: await store.head(), categories: [category] })
      await received.until(caughtUp)
      const ids = await givenLog(store, category)
      await received.until(({ events: got }) => got.length === ids.length)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal(ids)
    })

    it('resumes after each position of the history', async () => {
      const category = newCategory()
      const ids = await givenLog(store, category)
      const whole = feed(store, { after: 'start', categories: [category] })
      await whole.until(caughtUp)
      await whole.stop()
      for (const [n, { position }] of whole.events.entries()) {
        const rest = feed(store, { after: position, categories: [category] })
        await rest.until(caughtUp)
        await rest.stop()
        expect(idsOf(rest.events)).to.deep.equal(ids.slice(n + 1))
      }
    })

    it('refuses a position at which no event begins, and does not report it as an outage', async () => {
      const stream = newStream()
      await store.append(stream, events(3), 'no_stream')
      const [, middle = 0n] = positionsOf(await all(store.readStream(stream)))
      const { signal } = new AbortController()
      for (const offset of [-1n, 1n]) {
        const after = middle + offset
        const failure = await rejectionOf(all(store.subscribe({ after, signal })))
        expect(failure).not.to.be.instanceOf(Unavailable)
        expect(failure.message).to.match(/Exception was thrown by handler/)
      }
    })

    it('delivers every event with all its fields', async () => {
      const category = newCategory()
      const stream = newStream(category)
      const sent = { ...event({ text: 'Größe' }, 'Grüße'), metadata: { tenant: 'acme' } }
      await store.append(stream, [sent], 'no_stream')
      const received = feed(store, { after: 'start', categories: [category] })
      await received.until(caughtUp)
      await received.stop()
      expect(received.events).to.deep.equal(await all(store.readStream(stream)))
    })

    it('leaves out other categories, also one with the same beginning', async () => {
      const category = newCategory()
      const target = event()
      await store.append(newStream(`${category}x`), [event()], 'no_stream')
      await store.append(newStream(category), [target], 'no_stream')
      await store.append(newStream(), [event()], 'no_stream')
      const received = feed(store, { after: 'start', categories: [category] })
      await received.until(caughtUp)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal([target.id])
    })

    it('leaves out the given types, and not those that begin with the same letters', async () => {
      const category = newCategory()
      const stream = newStream(category)
      const [target, other] = [event(), event()]
      const elsewhere = { ...event(), type: 'Wanted' }
      await store.append(newStream(`${category}x`), [elsewhere], 'no_stream')
      await store.append(
        stream,
        [
          { ...other, type: 'NotWanted' },
          { ...target, type: 'NotWantedToo' },
        ],
        'no_stream',
      )
      await store.append(stream, [{ ...event(), type: 'NotWanted' }], 1n)
      const received = feed(store, { after: 'start', categories: [category], excludeTypes: ['NotWanted', 'AnyOther'] })
      await received.until(caughtUp)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal([target.id])
    })

    it('delivers several categories in one order', async () => {
      const categories = [newCategory(), newCategory()]
      const sent = events(6)
      for (const [n, one] of sent.entries()) await store.append(newStream(categories[n % 2]), [one], 'no_stream')
      const received = feed(store, { after: 'start', categories })
      await received.until(caughtUp)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal(idsOf(sent))
    })

    it('delivers every category when none is named, but no system stream', async () => {
      const after = await store.head()
      const sent = events(4)
      for (const one of sent) await store.append(newStream(), [one], 'no_stream')
      const received = feed(store, { after })
      await received.until(caughtUp)
      await received.stop()
      const ids = new Set(idsOf(received.events))
      expect(sent.every(({ id }) => ids.has(id))).to.equal(true)
      expect(received.events.filter(({ stream }) => stream.startsWith('$'))).to.deep.equal([])
    })

    it('reports the position up to which no event matches', async () => {
      const after = await store.head()
      const received = feed(store, { after, categories: [newCategory()] })
      await received.until(caughtUp)
      const stream = newStream()
      for (let n = 0; n < 10; n += 1) await store.append(stream, events(50), n === 0 ? 'no_stream' : BigInt(n * 50 - 1))
      await received.until(({ items }) => items.some(({ kind }) => kind === 'checkpoint'))
      await received.stop()
      const checkpoints = received.items.flatMap(item => (item.kind === 'checkpoint' ? [item.position] : []))
      expect(received.events).to.deep.equal([])
      expect(checkpoints.every(position => position > after)).to.equal(true)
      expect(isIncreasing(checkpoints)).to.equal(true)
    })

    it('resumes from a checkpoint without losing an event after it', async () => {
      const category = newCategory()
      const first = feed(store, { after: await store.head(), categories: [category] })
      await first.until(caughtUp)
      await store.append(newStream(), events(300), 'no_stream')
      await first.until(({ items }) => items.some(({ kind }) => kind === 'checkpoint'))
      await first.stop()
      const checkpoint = first.items.findLast(item => item.kind === 'checkpoint')
      const target = event()
      await store.append(newStream(category), [target], 'no_stream')
      const second = feed(store, { after: checkpoint?.position ?? 'start', categories: [category] })
      await second.until(({ events: got }) => got.length > 0)
      await second.stop()
      expect(idsOf(second.events)).to.deep.equal([target.id])
    })

    it('loses and repeats nothing while it catches up with a growing log', async () => {
      const category = newCategory()
      const ids: string[] = []
      const write = async (count: number): Promise<void> => {
        for (let n = 0; n < count; n += 10) {
          const sent = events(10)
          await store.append(newStream(category), sent, 'no_stream')
          ids.push(...idsOf(sent))
        }
      }
      await write(CATCH_UP_EVENTS / 2)
      const writing = write(CATCH_UP_EVENTS / 2)
      const received = [1, 2, 3].map(() => feed(store, { after: 'start', categories: [category] }))
      await writing
      for (const one of received) {
        await one.until(({ events: got }) => got.length >= CATCH_UP_EVENTS)
        await one.stop()
        expect(idsOf(one.events)).to.deep.equal(ids)
      }
    })

    it('loses and repeats nothing with racing writers', async () => {
      const category = newCategory()
      const received = feed(store, { after: await store.head(), categories: [category] })
      const writers = Array.from({ length: 40 }, () => store.append(newStream(category), events(10), 'no_stream'))
      await Promise.all(writers)
      await received.until(({ events: got }) => got.length >= 400)
      await received.stop()
      expect(new Set(idsOf(received.events)).size).to.equal(400)
      expect(received.events).to.have.length(400)
      expect(isIncreasing(positionsOf(received.events))).to.equal(true)
    })

    it('keeps the events of one append together', async () => {
      const category = newCategory()
      const sends = Array.from({ length: 20 }, () => ({ stream: newStream(category), sent: events(5) }))
      await Promise.all(sends.map(({ stream, sent }) => store.append(stream, sent, 'no_stream')))
      const received = feed(store, { after: 'start', categories: [category] })
      await received.until(caughtUp)
      await received.stop()
      for (let n = 0; n < 100; n += 5)
        expect(new Set(received.events.slice(n, n + 5).map(({ stream }) => stream)).size).to.equal(1)
    })

    it('delivers a live event promptly', async () => {
      const category = newCategory()
      const received = feed(store, { after: await store.head(), categories: [category] })
      await received.until(caughtUp)
      await holdsInOneOf(async () => {
        const tookMs: number[] = []
        for (let sample = 0; sample < LATENCY_SAMPLES; sample += 1) {
          const delivered = received.events.length + 1
          await store.append(newStream(category), [event()], 'no_stream')
          const storedAtMs = performance.now()
          await received.until(({ events: got }) => got.length === delivered)
          tookMs.push(performance.now() - storedAtMs)
        }
        // The median is compared, because other load of the machine delays some events, and a store that polls delays all.
        const median = tookMs.sort((a, b) => a - b)[LATENCY_SAMPLES / 2]
        expect(median).to.be.lessThan(LATENCY_MEDIAN_MAX_MS)
      })
      await received.stop()
    })

    it('delivers a large backlog completely and in order to a slow reader', async () => {
      const category = newCategory()
      const sent = events(1000)
      await store.append(newStream(category), sent, 'no_stream')
      const stopping = new AbortController()
      const ids: string[] = []
      for await (const item of store.subscribe({ after: 'start', categories: [category], signal: stopping.signal })) {
        if (item.kind === 'caught_up') break
        if (item.kind === 'event') ids.push(item.event.id)
        if (ids.length % 100 === 0) await sleep(20)
      }
      expect(ids).to.deep.equal(idsOf(sent))
    })

    it('ends at its signal, also while it waits', async () => {
      const received = feed(store, { after: await store.head(), categories: [newCategory()] })
      await received.until(caughtUp)
      const stoppedAtMs = performance.now()
      await received.stop()
      expect(performance.now() - stoppedAtMs).to.be.lessThan(STOPPED_MAX_MS)
    })

    it('may be ended early, and others continue', async () => {
      const category = newCategory()
      const other = feed(store, { after: await store.head(), categories: [category] })
      await other.until(caughtUp)
      await store.append(newStream(category), events(3), 'no_stream')
      const { signal } = new AbortController()
      for await (const item of store.subscribe({ after: 'start', categories: [category], signal }))
        if (item.kind === 'event') break
      await store.append(newStream(category), events(3), 'no_stream')
      await other.until(({ events: got }) => got.length === 6)
      await other.stop()
      expect(new Set(idsOf(other.events)).size).to.equal(6)
    })
  })
}
