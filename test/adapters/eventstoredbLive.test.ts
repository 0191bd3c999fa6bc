import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore, StoredEvent, SubscribeOptions } from '../../src/ports.ts'
import { caughtUp, events, feed, type Feed, idsOf, newCategory, newStream } from '../contracts/eventStoreFixtures.ts'
import { type TestNode, startTestNode } from '../embedded/eventStoreNode.ts'
import { eventually } from '../support/eventually.ts'

const CALL_CREATED = 'http2.client.stream.created'
const FEEDS = 6

/** The open read calls of this process. */
const observeReads = () => {
  const open = new Set<ClientHttp2Stream>()
  const created = (message: unknown): void => {
    const { stream, headers } = message as { stream: ClientHttp2Stream; headers: OutgoingHttpHeaders }
    if (headers[':path'] !== streamsGrpc.StreamsService.read.path) return
    open.add(stream)
    stream.once('close', () => open.delete(stream))
  }
  subscribe(CALL_CREATED, created)
  return { open: () => open.size, stop: () => void unsubscribe(CALL_CREATED, created) }
}

describe('feeds of one EventStoreDB adapter', () => {
  let node: TestNode
  let store: EventStore
  let reads: ReturnType<typeof observeReads>

  before(async () => {
    reads = observeReads()
    node = await startTestNode()
  })
  beforeEach(() => {
    store = openEventStore({ connectionString: node.address, appendDeadlineMs: 30_000 })
  })
  afterEach(() => store.close())
  after(async () => {
    await node.stop()
    reads.stop()
  })

  const append = async (category: string, count = 1): Promise<string[]> => {
    const sent = events(count)
    await store.append(newStream(category), sent, 'no_stream')
    return idsOf(sent)
  }

  /** Feeds join when an event comes. */
  const untilShared = (): Promise<boolean> =>
    eventually(async () => {
      await append(newCategory())
      return reads.open() === 1
    })

  /** Live feeds of the category, and of others, that share one subscription. */
  const givenSharingFeeds = async (category: string, options: Partial<SubscribeOptions> = {}): Promise<Feed[]> => {
    const after = await store.head()
    const feeds = Array.from({ length: FEEDS }, () => feed(store, { after, categories: [category], ...options }))
    await Promise.all(feeds.map(one => one.until(caughtUp)))
    await untilShared()
    return feeds
  }
  const stopAll = (feeds: readonly Feed[]): Promise<unknown> => Promise.all(feeds.map(one => one.stop()))

  it('share one call, which ends with the last of them', async () => {
    const category = newCategory()
    const feeds = await givenSharingFeeds(category)
    const ids = await append(category, 3)
    for (const one of feeds) await one.until(({ events: got }) => got.length === 3)
    for (const one of feeds) expect(idsOf(one.events)).to.deep.equal(ids)
    await eventually(() => reads.open() === 1)
    await stopAll(feeds)
    await eventually(() => reads.open() === 0)
  })

  it('end when the store is closed', async () => {
    const feeds = await givenSharingFeeds(newCategory())
    await store.close()
    await stopAll(feeds)
    await eventually(() => reads.open() === 0)
  })

  it('get events as others do, with their bytes where they ask', async () => {
    const category = newCategory()
    const feeds = await givenSharingFeeds(category)
    const sealing = feed(store, { after: await store.head(), categories: [category], withBytes: true })
    await sealing.until(caughtUp)
    await append(category, 2)
    for (const one of [...feeds, sealing]) await one.until(({ events: got }) => got.length === 2)
    const alone = openEventStore({ connectionString: node.address })
    for (const withBytes of [undefined, true] as const) {
      const whole = feed(alone, { after: 'start', categories: [category], ...(withBytes && { withBytes }) })
      await whole.until(caughtUp)
      await whole.stop()
      for (const one of withBytes ? [sealing] : feeds) expect(one.events).to.deep.equal(whole.events)
    }
    await alone.close()
    await stopAll([...feeds, sealing])
  })

  it('get a checkpoint for events that they do not want, from which they resume', async () => {
    const feeds = await givenSharingFeeds(newCategory())
    await append(newCategory())
    const head = await store.head()
    for (const one of feeds)
      await one.until(({ items }) => items.some(item => item.kind === 'checkpoint' && item.position === head))
    await eventually(() => reads.open() === 1)
    await stopAll(feeds)
    const resumed = feed(store, { after: head })
    await resumed.until(caughtUp)
    await resumed.stop()
    expect(resumed.events).to.deep.equal([])
  })

  it('have reached the end of the log when they have caught up, though they want none of its last events', async () => {
    const category = newCategory()
    await append(category)
    await append(newCategory(), 300)
    const head = await store.head()
    const alone = feed(store, { after: 'start', categories: [category] })
    await alone.until(caughtUp)
    await alone.stop()
    expect(alone.items.slice(-2)).to.deep.equal([{ kind: 'checkpoint', position: head }, { kind: 'caught_up' }])
  })

  it('stay when the store is killed: each is interrupted, catches up, and lacks nothing', async () => {
    const category = newCategory()
    const feeds = await givenSharingFeeds(category)
    const ids = await append(category, 2)
    node.kill()
    const sent = events(2)
    const stream = newStream(category)
    await eventually(() => store.append(stream, sent, 'no_stream').catch(() => undefined))
    for (const one of feeds) {
      await one.until(({ events: got }) => got.length === 4)
      await one.until(({ items }) => items.findLastIndex(({ kind }) => kind === 'caught_up') > interruptionOf(one))
      expect(interruptionOf(one)).to.be.greaterThan(0)
      expect(idsOf(one.events)).to.deep.equal([...ids, ...idsOf(sent)])
    }
    await eventually(() => reads.open() === 1)
    await stopAll(feeds)
  })

  it('are not held up by a slow one, which leaves, returns, and lacks nothing', async () => {
    const category = newCategory()
    const feeds = await givenSharingFeeds(category)
    const slow: string[] = []
    let isLive = false
    const stop = new AbortController()
    const released = Promise.withResolvers<void>()
    const after = await store.head()
    const reading = (async () => {
      for await (const item of store.subscribe({ after, categories: [category], signal: stop.signal })) {
        if (item.kind === 'caught_up') isLive = true
        if (item.kind === 'event') slow.push(item.event.id)
        if (slow.length === 3) await released.promise
      }
    })()
    await eventually(() => isLive)
    await untilShared()
    const ids = [...(await append(category, 1)), ...(await append(category, 1)), ...(await append(category, 1))]
    await eventually(() => slow.length === 3)
    for (let n = 0; n < 30; n += 1) ids.push(...(await append(category, 100)))
    for (const one of feeds) await one.until(({ events: got }) => got.length === ids.length)
    await untilShared()
    released.resolve()
    await eventually(() => slow.length === ids.length)
    expect(slow).to.deep.equal(ids)
    await eventually(async () => {
      ids.push(...(await append(category)))
      await eventually(() => slow.length === ids.length)
      return reads.open() === 1
    })
    expect(slow).to.deep.equal(ids)
    stop.abort()
    await reading
    await stopAll(feeds)
  })

  it('of any filter, start and speed lack and repeat nothing, whenever they join, leave and resume', async () => {
    const categories = [newCategory(), newCategory(), newCategory()]
    const first = await store.head()
    let isWriting = true
    const writing = Promise.all(
      categories.map(async category => {
        for (let n = 0; isWriting; n += 1) {
          const sent = events(1 + (n % 4)).map(one => ({ ...one, type: n % 3 === 0 ? 'Rare' : 'Happened' }))
          await store.append(newStream(category), sent, 'no_stream')
        }
      }),
    )
    const filters: readonly Pick<SubscribeOptions, 'categories' | 'excludeTypes' | 'withBytes'>[] = [
      {},
      { withBytes: true },
      { categories },
      ...categories.map(category => ({ categories: [category] })),
      { categories: categories.slice(1), excludeTypes: ['Rare'] },
      { excludeTypes: ['Happened'] },
      { categories: [newCategory()] },
    ]
    const readers = filters.flatMap(filter => [reader(store, filter, first, 0), reader(store, filter, first, 5)])
    await Promise.all(readers.map(one => one.rounds(4)))
    isWriting = false
    await writing
    await append(categories[0] ?? '', 1)
    const head = await store.head()
    await Promise.all(readers.map(one => one.upTo(head)))
    const alone = openEventStore({ connectionString: node.address })
    for (const { filter, got } of readers) {
      const whole = feed(alone, { after: first, ...filter })
      await whole.until(caughtUp)
      await whole.stop()
      expect(idsOf(got)).to.deep.equal(idsOf(whole.events))
    }
    await alone.close()
  })
})

const interruptionOf = ({ items }: Feed): number => items.findLastIndex(({ kind }) => kind === 'interrupted')

const ITEMS_PER_ROUND_MAX = 300

/** Reads in rounds of random length, each from the position of the one before, as a feed that is stopped and started. */
const reader = (
  store: EventStore,
  filter: Pick<SubscribeOptions, 'categories' | 'excludeTypes' | 'withBytes'>,
  first: bigint,
  pauseMs: number,
) => {
  const got: StoredEvent[] = []
  let after = first
  const read = async (isEnough: (items: number) => boolean, leaves: 'early' | 'by signal'): Promise<void> => {
    const stop = new AbortController()
    let count = 0
    for await (const item of store.subscribe({ after, ...filter, signal: stop.signal })) {
      count += 1
      if (item.kind === 'event') got.push(item.event)
      const position = item.kind === 'event' ? item.event.position : item.kind === 'checkpoint' ? item.position : after
      expect(position >= after, 'never back').to.equal(true)
      after = position
      if (isEnough(count) && leaves === 'early') break
      if (isEnough(count)) stop.abort()
      if (pauseMs > 0 && count % 20 === 0) await sleep(pauseMs)
    }
    stop.abort()
  }
  return {
    filter,
    got,
    rounds: async (rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const max = Math.ceil(Math.random() * ITEMS_PER_ROUND_MAX)
        await read(count => count >= max, round % 2 === 0 ? 'early' : 'by signal')
      }
    },
    upTo: (position: bigint): Promise<void> =>
      after >= position ? Promise.resolve() : read(() => after >= position, 'early'),
  }
}
