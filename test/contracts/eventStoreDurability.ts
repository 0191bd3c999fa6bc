import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { type EventStore, type NewEvent, Unavailable } from '../../src/ports.ts'
import { eventually } from '../support/eventually.ts'
import {
  type EventStoreUnderTest,
  all,
  caughtUp,
  event,
  events,
  feed,
  idsOf,
  newCategory,
  newStream,
} from './eventStoreFixtures.ts'

const APPENDS = 1000
const WRITERS = 20
const KILLS = 2
const KILLED_WITHIN_MS = 150
const HEAL_MAX_MS = 120_000
const RETRY_MS = 50

/** Resends an append with the same ids until the store is available. */
const persist = async (store: EventStore, stream: string, sent: readonly NewEvent[]): Promise<bigint> => {
  const deadlineMs = Date.now() + HEAL_MAX_MS
  for (;;) {
    try {
      const appended = await store.append(stream, sent, 'no_stream')
      if (appended.ok) return appended.position
      throw new Error(`unexpected conflict at ${appended.actual}`)
    } catch (error) {
      if (!(error instanceof Unavailable) || Date.now() > deadlineMs) throw error
      await sleep(RETRY_MS)
    }
  }
}

export const describeDurability = (started: () => EventStoreUnderTest): void => {
  describe('after a restart or a kill', () => {
    let store: EventStore
    beforeEach(() => {
      store = started().open()
    })
    afterEach(() => store.close())

    it('has all events as before a restart', async () => {
      const category = newCategory()
      const stream = newStream(category)
      const sent = events(40)
      const first = await store.append(stream, sent, 'no_stream')
      const before = await all(store.readStream(stream))
      const head = await store.head()
      await started().restart?.()
      await persist(store, newStream(), [event()])
      expect(await all(store.readStream(stream))).to.deep.equal(before)
      expect(await store.append(stream, sent, 'no_stream')).to.deep.equal(first)
      expect(await store.append(stream, [event()], 38n)).to.deep.equal({ ok: false, actual: 39n })
      expect((await store.head()) > head).to.equal(true)
    })

    it('continues a subscription without a gap or a duplicate', async () => {
      const category = newCategory()
      const received = feed(store, { after: await store.head(), categories: [category] })
      await received.until(caughtUp)
      const sent = events(30)
      for (const [n, one] of sent.entries()) {
        if (n === 15) await started().restart?.()
        await persist(store, newStream(category), [one])
      }
      await received.until(({ events: got }) => got.length >= sent.length)
      await received.stop()
      expect(idsOf(received.events)).to.deep.equal(idsOf(sent))
    })

    it('has each acknowledged event when it was killed during a thousand appends', async () => {
      const category = newCategory()
      const received = feed(store, { after: await store.head(), categories: [category] })
      const acknowledged = new Map<string, { stream: string; position: bigint }>()
      let left = APPENDS
      const write = async (): Promise<void> => {
        while (left > 0) {
          left -= 1
          const stream = newStream(category)
          const one = event({ left })
          acknowledged.set(one.id, { stream, position: await persist(store, stream, [one]) })
        }
      }
      const writing = Promise.all(Array.from({ length: WRITERS }, write))
      for (let kill = 1; kill <= KILLS; kill += 1) {
        await eventually(async () => acknowledged.size > (APPENDS * kill) / (KILLS + 1))
        started().kill?.()
        await persist(store, newStream(), [event()])
      }
      await writing
      await received.until(({ events: got }) => got.length >= APPENDS)
      await received.stop()
      expect(received.events).to.have.length(APPENDS)
      for (const { id, stream, position } of received.events)
        expect(acknowledged.get(id)).to.deep.equal({ stream, position })
    })

    it('has contiguous revisions when it was killed during appends to one stream', async () => {
      const stream = newStream()
      await store.append(stream, [event()], 'no_stream')
      const acknowledged: string[] = []
      for (let revision = 0n, killed = false; revision < 200n; ) {
        if (revision >= 100n && !killed) started().kill?.()
        killed ||= revision >= 100n
        const sent = [event(), event()]
        const appended = await store.append(stream, sent, revision).catch(() => undefined)
        if (appended?.ok === true) acknowledged.push(...idsOf(sent))
        revision = (await newestOf(store, stream)) ?? revision
      }
      const read = await all(store.readStream(stream))
      expect(read.map(({ revision }) => revision)).to.deep.equal(read.map((_, n) => BigInt(n)))
      expect(idsOf(read)).to.include.members(acknowledged)
      expect(read.length % 2).to.equal(1)
    })

    it('is available again by itself', async () => {
      await persist(store, newStream(), [event()])
      started().kill?.()
      await sleep(KILLED_WITHIN_MS)
      const stream = newStream()
      await persist(store, stream, [event()])
      expect(await all(store.readStream(stream))).to.have.length(1)
    })
  })
}

const newestOf = async (store: EventStore, stream: string): Promise<bigint | undefined> => {
  for (let waitedMs = 0; waitedMs < HEAL_MAX_MS; waitedMs += RETRY_MS) {
    try {
      return (await all(store.readStream(stream, { direction: 'backwards', limit: 1 })))[0]?.revision
    } catch {
      await sleep(RETRY_MS)
    }
  }
  throw new Error('The store did not come back.')
}
