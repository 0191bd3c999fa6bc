import { expect } from 'chai'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { topicOf } from '../../projections/factTopics.ts'
import { factMessageOf } from '../../src/feeds/factMessage.ts'
import { publisherOf } from '../../src/feeds/publisher.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import { type Feed, type FeedState, runFeeds } from '../../src/feeds/feedLoop.ts'
import { publishedBy } from '../../projections/facts/projection.ts'
import { decode } from '../../src/feeds/decode.ts'
import { type Database, type FactMessage, type FactProducer, Unavailable } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { id } from '../streams/samples.ts'
import { createReports, fillLog, foldedRows, type Reports, rowsIn, useTestPostgres } from './fixtures.ts'
import { eventually } from '../support/eventually.ts'

/** A bus that records acknowledged messages, and can fail or delay acknowledgements. */
const createBus = () => {
  const acknowledged: FactMessage[] = []
  const sent: FactMessage[][] = []
  const state = { failures: 0, lostAcks: 0, hold: false }
  const held = Promise.withResolvers<void>()
  const bus: FactProducer = {
    ensureTopics: () => Promise.resolve(),
    publish: async messages => {
      sent.push([...messages])
      if (state.failures > 0) {
        state.failures -= 1
        throw new Unavailable('fact bus', { effect: 'none' })
      }
      if (state.hold) await held.promise
      acknowledged.push(...messages)
      if (state.lostAcks === 0) return
      state.lostAcks -= 1
      throw new Unavailable('fact bus', { effect: 'unknown' })
    },
    close: () => Promise.resolve(),
  }
  return { bus, acknowledged, sent, state, release: held.resolve }
}

describe('running feeds', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let reports: Reports
  let stop: AbortController
  const running: Promise<void>[] = []

  const publisher = (bus: FactProducer): Feed => publisherOf({ database, bus, store: log.open(), world: realWorld() })
  const run = (feeds: readonly Feed[], on = database, name = 'tests'): Promise<void> => {
    const dependencies = { store: log.open(), database: on, world: realWorld(), report: reports.report }
    const ended = runFeeds(name, feeds, dependencies, stop.signal)
    running.push(ended)
    return ended
  }
  const projector = (): Feed =>
    projectorOf({ database, store: log.open(), world: realWorld() }, readModels, () => undefined)
  const head = (): bigint => log.head()
  const newest = (name: string): FeedState | undefined => reports.states.findLast(state => state.name === name)
  const isLive = (name: string) => () => newest(name)?.state === 'live' && newest(name)?.position === head()
  const endLeases = (): Promise<unknown> =>
    database.sql(`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()
      and database = (select oid from pg_database where datname = current_database())`)
  /** The messages of all facts, in the order of the log. */
  const published = (): FactMessage[] =>
    log.events.flatMap(stored => {
      if (stored.stream.startsWith('reference-')) return []
      const { category, recorded } = decode(stored)
      const event = publishedBy(category, recorded)
      return event ? [factMessageOf(topicOf(category), event)] : []
    })

  before(async () => {
    log = await fillLog(6)
  })
  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    reports = createReports()
    stop = new AbortController()
  })
  afterEach(async () => {
    stop.abort()
    await Promise.all(running.splice(0))
  })

  for (const { gather, pauseMs } of [
    { gather: {}, pauseMs: 50 },
    { gather: { gatherMs: 700 }, pauseMs: 700 },
  ])
    it(`pause for ${pauseMs} ms after a batch that was not full: ${JSON.stringify(gather)}`, async () => {
      const pauses: number[] = []
      const world = realWorld()
      const sleep: typeof world.sleep = (ms, signal) => {
        pauses.push(ms)
        return world.sleep(ms, signal)
      }
      const beginRun: Feed['beginRun'] = () =>
        Promise.resolve({ after: 'start', processBatch: () => Promise.resolve() })
      const feed: Feed = { name: 'pausing', ...gather, beginRun }
      const dependencies = { store: log.open(), database, world: { ...world, sleep }, report: reports.report }
      running.push(runFeeds('pausing', [feed], dependencies, stop.signal))
      await eventually(() => pauses.includes(pauseMs))
    })

  it('process fewer events at once while a dependency does not finish a batch in time, and more again afterwards', async () => {
    const sizes: number[] = []
    const processed = new Set<bigint>()
    let finishedMax = 2
    let firstUnlimited = 0
    const beginRun: Feed['beginRun'] = () =>
      Promise.resolve({
        after: [...processed].at(-1) ?? 'start',
        processBatch: async events => {
          sizes.push(events.length)
          if (events.length > finishedMax) throw new Unavailable('database', { effect: 'none' })
          for (const { position } of events) processed.add(position)
          if (finishedMax > 2 || processed.size < log.events.length / 2) return
          finishedMax = Number.POSITIVE_INFINITY
          firstUnlimited = sizes.length
        },
      })
    void run([{ name: 'slow', beginRun }])
    await eventually(() => processed.size === log.events.length)
    expect([...processed]).to.deep.equal(log.events.map(({ position }) => position))
    expect(Math.max(...sizes.slice(firstUnlimited))).to.be.greaterThan(2)
  })

  describe('the projector', () => {
    it('catches up, reports that it is live, and writes later events', async () => {
      void run([projector()])
      await eventually(isLive('projector'))
      expect(reports.states[0]).to.deep.equal({ name: 'projector', state: 'waiting', position: 0n })
      const folded = await foldedRows(log)
      expect(await rowsIn(database, 'payments_v1')).to.deep.equal(folded.payments_v1)
      const order = `order-${id('ord', 7)}`
      const later = (await fillLog(7)).events.find(({ stream }) => stream === order) ?? expect.fail()
      const { type, data, metadata } = later
      await log.open().append(order, [{ id: later.id, type, data, metadata }], 'no_stream')
      await eventually(isLive('projector'))
      expect(await rowsIn(database, 'orders_v1')).to.have.length(folded.orders_v1.length + 1)
      expect(reports.states.every(({ error }) => error === undefined)).to.equal(true)
    })

    it('ends at its signal, and the next run continues', async () => {
      const first = run([projector()])
      await eventually(isLive('projector'))
      stop.abort()
      await first
      stop = new AbortController()
      void run([projector()])
      await eventually(isLive('projector'))
      expect(await positionOf(database.sql, 'orders_v1')).to.equal(head())
    })

    it('runs in one of two processes, while the other waits until it takes over', async () => {
      void run([projector()])
      await eventually(isLive('projector'))
      const mine = stop
      stop = new AbortController()
      const seen = createReports()
      const dependencies = { store: log.open(), database, world: realWorld(), report: seen.report }
      running.push(runFeeds('tests', [projector()], dependencies, stop.signal))
      await eventually(() => seen.states.length > 0)
      await new Promise(resolve => setTimeout(resolve, 200))
      expect(seen.states.map(({ state }) => state)).to.deep.equal(['waiting'])
      mine.abort()
      await eventually(() => seen.states.at(-1)?.state === 'live')
    })

    it('waits for its lease again when it is lost', async () => {
      void run([projector()])
      await eventually(isLive('projector'))
      const before = reports.states.length
      await endLeases()
      await eventually(() => reports.states.slice(before).some(({ state }) => state === 'waiting'))
      await eventually(() => reports.states.at(-1)?.state === 'live')
      const [lease] = await database.sql<{ epoch: bigint }>('select epoch from ledger_meta.leases')
      expect(lease?.epoch).to.equal(2n)
    })
  })

  it('of a lost lease begin their next runs independently, and never beside their own earlier run', async () => {
    const held = Promise.withResolvers<void>()
    const began: string[] = []
    const feedThat = (name: string, processBatch: () => Promise<void>): Feed => ({
      name,
      beginRun: async epoch => {
        began.push(`${name} ${epoch}`)
        return { after: 'start', processBatch }
      },
    })
    let isHeld = false
    const slow = feedThat('slow', async () => {
      isHeld = true
      await held.promise
    })
    void run([slow, feedThat('quick', async () => {})])
    try {
      await eventually(() => isHeld && isLive('quick')())
      await endLeases()
      await eventually(() => began.includes('quick 2') && isLive('quick')())
      expect(began).not.to.include('slow 2')
      await endLeases()
      await eventually(() => began.includes('quick 3'))
      expect(began.filter(one => one.startsWith('slow'))).to.deep.equal(['slow 1'])
    } finally {
      held.resolve()
    }
    await eventually(() => began.includes('slow 3'))
    expect(began.filter(one => one.startsWith('slow'))).to.deep.equal(['slow 1', 'slow 3'])
  })

  it('end at their signal when all runs have ended, those of an earlier lease too', async () => {
    const held = Promise.withResolvers<void>()
    let isHeld = false
    let epochs = 0n
    const processBatch = async (): Promise<void> => {
      isHeld = true
      await held.promise
    }
    const beginRun: Feed['beginRun'] = async () => ({ after: 'start', processBatch })
    const other: Feed['beginRun'] = async epoch => {
      epochs = epoch
      return { after: 'start', processBatch: async () => {} }
    }
    let hasEnded = false
    const ended = run([
      { name: 'slow', beginRun },
      { name: 'quick', beginRun: other },
    ]).then(() => (hasEnded = true))
    try {
      await eventually(() => isHeld && isLive('quick')())
      await endLeases()
      await eventually(() => epochs === 2n)
      stop.abort()
      await new Promise(resolve => setTimeout(resolve, 200))
      expect(hasEnded).to.equal(false)
    } finally {
      held.resolve()
    }
    await ended
  })

  describe('the publisher', () => {
    it('sends every fact of the log in its order, and nothing else', async () => {
      const { bus, acknowledged } = createBus()
      void run([publisher(bus)])
      await eventually(isLive('publisher'))
      expect(published().length).to.be.at.least(20)
      expect(acknowledged).to.deep.equal(published())
    })

    it('does not move its checkpoint before the acknowledgement', async () => {
      const { bus, acknowledged, sent, state, release } = createBus()
      state.hold = true
      void run([publisher(bus)])
      await eventually(() => sent.length > 0)
      await new Promise(resolve => setTimeout(resolve, 100))
      const position = await positionOf(database.sql, 'publisher')
      const before = acknowledged.length
      // The acknowledgement is released even if an expectation fails, so that the feed can end.
      release()
      expect({ position, before }).to.deep.equal({ position: 0n, before: 0 })
      await eventually(isLive('publisher'))
      expect(await positionOf(database.sql, 'publisher')).to.equal(head())
    })

    it('sends the same messages again when they were refused, and reports that it waits', async () => {
      const { bus, acknowledged, sent, state } = createBus()
      state.failures = 2
      void run([publisher(bus)])
      await eventually(isLive('publisher'))
      expect(sent[1]).to.deep.equal(sent[0])
      expect(acknowledged).to.deep.equal(published())
      const waits = reports.states.filter(({ error }) => error !== undefined)
      expect(waits.map(({ state: reported }) => reported)).to.deep.equal(['waiting', 'waiting'])
    })

    it('repeats the messages byte for byte when the acknowledgement was lost', async () => {
      const { bus, acknowledged, state } = createBus()
      state.lostAcks = 1
      void run([publisher(bus)])
      await eventually(isLive('publisher'))
      const count = published().length
      expect(acknowledged.length).to.be.greaterThan(count)
      expect(acknowledged.slice(-count)).to.deep.equal(published())
      const bytes = new Map<string, string>()
      for (const message of acknowledged) {
        const id = message.headers['ce_id'] ?? ''
        expect(JSON.stringify(message)).to.equal(bytes.get(id) ?? JSON.stringify(message))
        bytes.set(id, JSON.stringify(message))
      }
      expect(bytes.size).to.equal(count)
    })

    it('continues from its checkpoint after a restart, and sends nothing twice', async () => {
      const first = createBus()
      const ended = run([publisher(first.bus)])
      await eventually(isLive('publisher'))
      stop.abort()
      await ended
      stop = new AbortController()
      reports = createReports()
      const second = createBus()
      void run([publisher(second.bus)])
      await eventually(isLive('publisher'))
      expect(second.acknowledged).to.deep.equal([])
    })
  })

  describe('a feed that fails', () => {
    const poisoned = (name: string): Feed => ({
      ...publisher(createBus().bus),
      name,
      beginRun: async () => ({
        after: 'start',
        processBatch: async (events, position) => {
          if (position >= (log.events[39]?.position ?? 0n)) throw new Error(`cannot read ${events.at(-1)?.type}`)
        },
      }),
    })

    it('in a batch stops with the error, while the others run', async () => {
      void run([poisoned('failing'), projector()])
      await eventually(isLive('projector'))
      await eventually(() => newest('failing')?.state === 'stopped')
      expect(newest('failing')?.error).to.match(/^cannot read \w+$/)
      expect(newest('projector')?.error).to.equal(undefined)
    })

    it('in its background work stops with the error too', async () => {
      const feed: Feed = {
        ...publisher(createBus().bus),
        name: 'failing',
        beginRun: async () => ({
          after: 'start',
          processBatch: () => Promise.resolve(),
          background: () => Promise.reject(new Error('in the background')),
        }),
      }
      void run([feed, projector()])
      await eventually(() => newest('failing')?.state === 'stopped')
      expect(newest('failing')?.error).to.equal('in the background')
      await eventually(isLive('projector'))
    })
  })
})
