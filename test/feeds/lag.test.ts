import { expect } from 'chai'
import { type Followed, LAG_EVENTS_MAX, lagsOf } from '../../src/feeds/lag.ts'
import type { EventStore, NewEvent } from '../../src/ports.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'

describe('the lag of a feed', () => {
  const STORED_AT_MS = Date.parse('2026-01-01T00:00:00Z')
  let log: MemoryLog
  let store: EventStore
  let nowMs: number
  let ids = 0

  const append = async (stream: string, type = 'Happened'): Promise<bigint> => {
    const event: NewEvent = { id: `e${(ids += 1)}`, type, data: {}, metadata: {} }
    const last = log.events.findLast(known => known.stream === stream)
    await store.append(stream, [event], last?.revision ?? 'no_stream')
    return log.head()
  }
  const lagOf = async (feed: Omit<Followed, 'name'>) =>
    (await lagsOf(store, [{ name: 'one', ...feed }], nowMs)).get('one')

  beforeEach(() => {
    nowMs = STORED_AT_MS
    log = createMemoryLog(() => nowMs)
    store = log.open()
  })

  it('is the number of events after its checkpoint, and the age of the oldest of them', async () => {
    const first = await append('order-1')
    nowMs += 10_000
    await append('order-2')
    nowMs += 20_000
    await append('order-3')
    nowMs += 5_000
    expect(await lagOf({ position: first })).to.deep.equal({ events: 2, seconds: 25 })
    expect(await lagOf({ position: undefined })).to.deep.equal({ events: 3, seconds: 35 })
    expect(await lagOf({ position: log.head() })).to.deep.equal({ events: 0, seconds: 0 })
  })

  it('leaves out the events that it does not read', async () => {
    await append('order-1')
    await append('invoice-1')
    await append('invoice-1', 'Ignored')
    expect(await lagOf({ position: -1n, categories: ['invoice'], excludeTypes: ['Ignored'] })).to.include({ events: 1 })
    expect(await lagOf({ position: -1n, categories: ['payment'] })).to.deep.equal({ events: 0, seconds: 0 })
  })

  it('is counted up to a limit, for all feeds in one reading', async () => {
    for (let n = 0; n < LAG_EVENTS_MAX + 5; n += 1) await append(`order-${n}`)
    const feeds = [
      { name: 'first', position: -1n },
      { name: 'second', position: log.events[9]?.position },
    ]
    const lags = await lagsOf(store, feeds, nowMs)
    expect([lags.get('first')?.events, lags.get('second')?.events]).to.deep.equal([LAG_EVENTS_MAX, LAG_EVENTS_MAX - 10])
  })

  it('is known of a feed whose checkpoint is beyond the events that were read for another', async () => {
    for (let n = 0; n < LAG_EVENTS_MAX + 5; n += 1) await append(`order-${n}`)
    const near = await append('order-near')
    nowMs += 5_000
    await append('invoice-1')
    await append('invoice-2')
    nowMs += 10_000
    const feeds = [
      { name: 'stopped', position: -1n },
      { name: 'invoices', position: near, categories: ['invoice'] },
      { name: 'payments', position: near, categories: ['payment'] },
    ]
    const lags = await lagsOf(store, feeds, nowMs)
    expect(lags.get('invoices')).to.deep.equal({ events: 2, seconds: 10 })
    expect(lags.get('payments')).to.deep.equal({ events: 0, seconds: 0 })
    expect(lags.get('stopped')).to.include({ events: LAG_EVENTS_MAX })
  })

  it('is that of all events where the events that the feed reads lie beyond the limit', async () => {
    for (let n = 0; n < LAG_EVENTS_MAX; n += 1) await append(`order-${n}`)
    expect(await lagOf({ position: -1n, categories: ['invoice'] })).to.deep.equal({ events: 0, seconds: 0 })
    nowMs += 10_000
    await append('invoice-1')
    nowMs += 10_000
    expect(await lagOf({ position: -1n, categories: ['invoice'] })).to.deep.equal({
      events: LAG_EVENTS_MAX,
      seconds: 20,
    })
    expect(await lagOf({ position: log.events[0]?.position, categories: ['invoice'] })).to.include({ events: 1 })
  })

  it('is never negative where the clock of the store is ahead', async () => {
    await append('order-1')
    nowMs -= 60_000
    expect(await lagOf({ position: -1n })).to.deep.equal({ events: 1, seconds: 0 })
  })
})
