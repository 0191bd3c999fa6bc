import { expect } from 'chai'
import {
  itemsFrom,
  type LiveFeed,
  LiveSubscription,
  selected,
} from '../../src/adapters/eventstoredb/liveSubscription.ts'
import { LiveWindow } from '../../src/adapters/eventstoredb/liveWindow.ts'
import type { FeedItem } from '../../src/ports.ts'
import { eventually } from '../support/eventually.ts'

const CAUGHT_UP: FeedItem = { kind: 'caught_up' }
const INTERRUPTED: FeedItem = { kind: 'interrupted', error: new Error('The store was lost.') }
const WINDOW_ITEMS_MAX = 2_000
const MEBIBYTE = 1024 * 1024

const eventAt = (position: bigint, { stream = 'invoice-1', bytes = 2 } = {}): FeedItem => ({
  kind: 'event',
  event: {
    id: `id-${position}`,
    type: 'Happened',
    data: {},
    metadata: {},
    stream,
    revision: 0n,
    position,
    storedAt: '2026-11-23T00:00:00.000Z',
    bytes: { data: Buffer.alloc(bytes), metadata: Buffer.alloc(0), contentType: 'application/json', createdTicks: 0n },
  },
})

/** Positions with gaps, as those of EventStoreDB. */
const eventsUpTo = (count: number): FeedItem[] => Array.from({ length: count }, (_, n) => eventAt(BigInt(100 + n * 10)))

const windowWith = (...items: readonly FeedItem[]): LiveWindow => {
  const window = new LiveWindow()
  window.push([CAUGHT_UP, ...items])
  return window
}

/** The positions and kinds that a feed reads which joins with this position; undefined if it cannot join. */
const readFrom = (window: LiveWindow, position: bigint): (bigint | string)[] | undefined => {
  const number = window.numberAfter(position)
  return number === undefined ? undefined : window.from(number)?.map(({ plain }) => shown(plain))
}

const shown = (item: FeedItem): bigint | string =>
  item.kind === 'event' ? item.event.position : item.kind === 'checkpoint' ? `up to ${item.position}` : item.kind

describe('the window of the live log', () => {
  it('continues a feed after its last event', () => {
    const window = windowWith(...eventsUpTo(3))
    expect(readFrom(window, 100n)).to.deep.equal([110n, 120n])
    expect(readFrom(window, 120n)).to.deep.equal([])
  })

  it('admits no feed that may lack an event before the window', () => {
    const window = windowWith(...eventsUpTo(3))
    expect(readFrom(window, 90n)).to.equal(undefined)
    expect(readFrom(window, -1n)).to.equal(undefined)
  })

  it('admits no feed before the first event, because the place of the end is not known', () => {
    expect(readFrom(windowWith(), 100n)).to.equal(undefined)
  })

  it('admits a feed with the first event, also if the store has not announced that the subscription is live', () => {
    const window = new LiveWindow()
    window.push([eventAt(100n)])
    expect(readFrom(window, 100n)).to.deep.equal([])
  })

  it('admits a feed that is ahead, with nothing to read yet', () => {
    expect(readFrom(windowWith(...eventsUpTo(3)), 130n)).to.deep.equal([])
  })

  it('admits no feed while the store does not answer', () => {
    const window = windowWith(...eventsUpTo(3), INTERRUPTED)
    expect(readFrom(window, 110n)).to.equal(undefined)
    window.push([eventAt(130n)])
    expect(readFrom(window, 110n)).to.equal(undefined)
    window.push([CAUGHT_UP])
    expect(readFrom(window, 110n)).to.deep.equal([120n, 'interrupted', 130n, 'caught_up'])
  })

  it('keeps a bounded number of items, and a feed that has not read the removed ones must leave', () => {
    const window = windowWith(...eventsUpTo(3))
    const number = window.numberAfter(120n) ?? -1
    window.push(eventsUpTo(WINDOW_ITEMS_MAX * 3))
    expect(window.from(number)).to.equal(undefined)
    const lastButOne = BigInt(100 + (WINDOW_ITEMS_MAX * 3 - 2) * 10)
    expect(readFrom(window, lastButOne)).to.deep.equal([lastButOne + 10n])
    expect(readFrom(window, lastButOne - BigInt(WINDOW_ITEMS_MAX * 10))).to.equal(undefined)
    expect(readFrom(window, 120n)).to.equal(undefined)
  })

  it('keeps a bounded number of bytes', () => {
    const window = windowWith(...Array.from({ length: 100 }, (_, n) => eventAt(BigInt(n * 10), { bytes: MEBIBYTE })))
    expect(window.from(97 + 1)?.length).to.equal(3)
    expect(window.from(90)).to.equal(undefined)
  })
})

describe('the selection of one feed from the live log', () => {
  const isWanted = ({ stream }: { readonly stream: string }): boolean => stream.startsWith('invoice-')
  const select = (items: readonly FeedItem[], passed = 0n): (bigint | string)[] => {
    const window = windowWith(eventAt(1n), ...items)
    const live = (window.from(2) ?? []).map(item => item)
    return selected(live, passed, { isWanted, withBytes: false }).map(shown)
  }
  const other = (position: bigint): FeedItem => eventAt(position, { stream: 'payment-1' })

  it('has one checkpoint for the unwanted events behind the last wanted one', () => {
    expect(select([other(10n), eventAt(20n), other(30n), other(40n)])).to.deep.equal([20n, 'up to 40'])
    expect(select([other(10n), eventAt(20n)])).to.deep.equal([20n])
  })

  it('has the checkpoint before an interruption, because an item after it shows that it is over', () => {
    expect(select([other(10n), INTERRUPTED])).to.deep.equal(['up to 10', 'interrupted'])
    expect(select([other(10n), INTERRUPTED, CAUGHT_UP])).to.deep.equal(['up to 10', 'interrupted', 'caught_up'])
  })

  it('leaves out what the feed has: it never goes back', () => {
    expect(select([eventAt(10n), other(20n), eventAt(30n)], 20n)).to.deep.equal([30n])
    expect(select([other(10n), other(20n)], 30n)).to.deep.equal([])
  })

  it('has the stored bytes for a feed that asks, and not for the others', () => {
    const live = windowWith(eventAt(10n)).from(1) ?? []
    const bytesIn = (withBytes: boolean): unknown[] =>
      selected(live, 0n, { isWanted, withBytes }).map(item => item.kind === 'event' && 'bytes' in item.event)
    expect(bytesIn(true)).to.deep.equal([true])
    expect(bytesIn(false)).to.deep.equal([false])
  })
})

/** A subscription whose items the test provides. */
const openSource = () => {
  const signals: AbortSignal[] = []
  const given: (readonly FeedItem[] | Error)[] = []
  let wake = (): void => undefined
  const live = new LiveSubscription(async function* (signal) {
    signals.push(signal)
    signal.addEventListener('abort', () => wake())
    while (!signal.aborted) {
      const next = given.shift()
      if (next instanceof Error) throw next
      if (next === undefined) await new Promise<void>(resolve => (wake = resolve))
      else yield next
    }
  })
  const push = (next: readonly FeedItem[] | Error): void => {
    given.push(next)
    wake()
  }
  return {
    live,
    signals,
    give: (...items: readonly FeedItem[]): void => push(items),
    fail: (error: Error): void => push(error),
  }
}

const newFeed = (): LiveFeed => ({ wake: () => undefined })
const AT_FIRST = 100n

describe('the live subscription', () => {
  /** Two feeds that have joined, and the items of each. */
  const givenTwoFeeds = async () => {
    const source = openSource()
    const feeds = [newFeed(), newFeed()] as const
    for (const feed of feeds) source.live.placeOf(feed, AT_FIRST)
    source.give(CAUGHT_UP, eventAt(100n))
    const stops = [new AbortController(), new AbortController()] as const
    const join = async (n: 0 | 1) => {
      const place = await eventually(() => source.live.placeOf(feeds[n], AT_FIRST))
      stops[n].signal.addEventListener('abort', () => source.live.leave(feeds[n]))
      return itemsFrom(place, feeds[n], stops[n].signal)
    }
    return { source, feeds, stops, items: [await join(0), await join(1)] as const }
  }

  it('begins with the second feed, once for all', async () => {
    const { live, signals } = openSource()
    live.placeOf(newFeed(), AT_FIRST)
    expect(signals).to.have.length(0)
    live.placeOf(newFeed(), AT_FIRST)
    live.placeOf(newFeed(), AT_FIRST)
    expect(signals).to.have.length(1)
  })

  it('ends with the last feed, and begins again', async () => {
    const { source, stops, feeds } = await givenTwoFeeds()
    stops[0].abort()
    expect(source.signals[0]?.aborted).to.equal(false)
    stops[1].abort()
    expect(source.signals[0]?.aborted).to.equal(true)
    for (const feed of feeds) source.live.placeOf(feed, AT_FIRST)
    expect(source.signals).to.have.length(2)
  })

  it('hands the same objects to every feed', async () => {
    const { source, items } = await givenTwoFeeds()
    const waiting = items.map(one => one.next())
    source.give(eventAt(110n))
    const [first, second] = await Promise.all(waiting)
    expect(first?.value?.[0].plain).to.equal(second?.value?.[0].plain)
  })

  it('never waits for a feed: one that has fallen behind leaves, and the other has everything', async () => {
    const { source, items } = await givenTwoFeeds()
    const slow = items[0].next()
    source.give(eventAt(110n))
    expect((await slow).value).to.have.length(1)
    const positions: bigint[] = []
    let last = 110n
    for (let round = 0; round < 40; round += 1) {
      source.give(...Array.from({ length: 100 }, () => eventAt((last += 10n))))
      while (positions.at(-1) !== last)
        for (const { plain } of (await items[1].next()).value ?? [])
          if (plain.kind === 'event') positions.push(plain.event.position)
    }
    expect(positions).to.deep.equal(Array.from({ length: 4_001 }, (_, n) => BigInt(110 + n * 10)))
    expect(await items[0].next()).to.deep.include({ done: true })
  })

  it('ends the wait of a feed at its signal', async () => {
    const { stops, items } = await givenTwoFeeds()
    const waiting = items[0].next()
    stops[0].abort()
    expect(await waiting).to.deep.include({ done: true })
  })

  it('ends for each feed at a failure, after the items before it, and then begins again', async () => {
    const { source, items, feeds } = await givenTwoFeeds()
    const waiting = items.map(one => one.next())
    source.give(eventAt(110n))
    source.fail(new Error('No event begins here.'))
    for (const { value } of await Promise.all(waiting)) expect(value).to.have.length(1)
    for (const one of items) expect(await one.next()).to.deep.include({ done: true })
    for (const feed of feeds) source.live.placeOf(feed, AT_FIRST)
    expect(source.signals).to.have.length(2)
  })
})
