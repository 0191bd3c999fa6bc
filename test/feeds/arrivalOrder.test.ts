import { expect } from 'chai'
import {
  factsAfter,
  type FactsPageRow,
  factsPage,
  type FeedPlace,
  lastPlace,
  placeBefore,
  type TailFact,
} from '../../projections/facts/queries.ts'
import { emptyTablesOfLog } from '../../src/logIdentity/logIdentity.ts'
import { resetTables } from '../../src/logIdentity/tablesReset.ts'
import { adoptReaderPositions } from '../../src/logIdentity/readerPositions.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { parkedOfKey, parkedSummary, requestParked } from '../../src/feeds/parkedEvents.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import { runFeeds } from '../../src/feeds/feedLoop.ts'
import type { Database, EventStore, StoredEvent, World } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { createReports, feedAll, fillLog, useTestPostgres } from './fixtures.ts'
import { eventually } from '../support/eventually.ts'

const TENANT = 'acme'
const BEGINNING = placeBefore(0n)
const PAGE = 7

type Read = { readonly ids: string[]; readonly at: FeedPlace }

describe('a reader of the facts, while the projector parks and replays events,', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database

  beforeEach(async () => {
    log = await fillLog(6)
    database = await postgres.ledgerDatabase()
  })

  /** Follows the cursor from a position to the tail, as GET /events and its stream do. */
  const readFrom = async (from: FeedPlace): Promise<Read> => {
    const ids: string[] = []
    for (let at = from; ; ) {
      const { text, values } = factsPage({ tenant: TENANT, after: at, limit: PAGE })
      const rows = await database.sql<FactsPageRow>(text, values)
      if (rows.length === 0) return { ids, at }
      ids.push(...rows.flatMap(({ event }) => (event ? [event.id] : [])))
      at = rows.at(-1) ?? at
    }
  }
  const projector = (on = database, { store = log.open(), world = realWorld() } = {}) =>
    projectorOf({ database: on, store, world }, readModels, () => undefined)
  /** The ids of all facts, in the order of the log, by a projector that parks nothing. */
  const allFacts = async (of: MemoryLog): Promise<string[]> => {
    const previous = database
    database = await postgres.ledgerDatabase()
    await feedAll(projector(), of)
    const { ids } = await readFrom(BEGINNING)
    database = previous
    return ids
  }
  const keyOf = ({ stream }: StoredEvent): string => stream.slice(stream.indexOf('-') + 1)
  /** The stream of an invoice with two facts: approved and paid. */
  const victim = (): StoredEvent => log.events.find(({ type }) => type === 'InvoicePaid') ?? expect.fail()
  /** Makes an event of a stream undecodable, so that it and the later ones of the stream are parked. */
  const poisoned = (stream: string, of = log): MemoryLog => {
    const at = of.events.findIndex(event => event.stream === stream && event.revision === 1n)
    const events = of.events.with(at, { ...(of.events[at] ?? expect.fail()), type: 'InvoiceVanished' })
    return { ...of, events }
  }
  const factsOf = async (stream: string): Promise<string[]> => {
    const ids = new Set(log.events.filter(event => event.stream === stream).map(({ id }) => id))
    return (await allFacts(log)).filter(id => ids.has(id))
  }
  /** The operator's replay of the parked events, after the cause is repaired. */
  const replay = async (key: string, store = log.open()): Promise<void> => {
    const stop = new AbortController()
    const dependencies = { store, database, world: realWorld(), report: createReports().report }
    await requestParked(database.sql, { delivery: 'facts_v1', key }, 'replay')
    const running = runFeeds('arrivals', [projector(database, { store })], dependencies, stop.signal)
    await eventually(async () => (await parkedOfKey(database.sql, 'facts_v1', key)).length === 0)
    stop.abort()
    await running
  }

  it('reads every other fact in the order of the log while a batch with an undecodable event is written', async () => {
    const { stream } = victim()
    const own = await factsOf(stream)
    const expected = (await allFacts(log)).filter(id => !own.includes(id))
    let read: Read = { ids: [], at: BEGINNING }
    const follow = async (): Promise<void> => {
      const next = await readFrom(read.at)
      read = { ids: [...read.ids, ...next.ids], at: next.at }
    }
    // A reader reads after every transaction, committed or not.
    const watched: Database = {
      ...database,
      transaction: work => database.transaction(work).finally(follow),
    }
    await feedAll(projector(watched), poisoned(stream))
    await follow()
    expect(read.ids).to.deep.equal(expected)
  })

  it('reads parked facts after their replay, at the tail, in the order of their key', async () => {
    const { stream } = victim()
    const own = await factsOf(stream)
    await feedAll(projector(), poisoned(stream))
    const early = await readFrom(BEGINNING)
    await replay(keyOf(victim()))
    const late = await readFrom(early.at)
    expect(own.length).to.be.greaterThan(1)
    expect(late.ids).to.deep.equal(own)
    // A reader that begins later reads the same facts in the same order, each once.
    expect((await readFrom(BEGINNING)).ids).to.deep.equal([...early.ids, ...late.ids])
  })

  it('continues from the same position after a rebuild of the table', async () => {
    const { stream } = victim()
    await feedAll(projector(), poisoned(stream))
    const early = await readFrom(BEGINNING)
    await replay(keyOf(victim()))
    const whole = await readFrom(BEGINNING)
    await database.sql('truncate facts_v1')
    await database.sql('update checkpoints set position = -1')
    const half = log.events.length / 2
    await feedAll(projector(), { ...log, events: log.events.slice(0, half) }, 9)
    // A late fact becomes visible after all facts before its arrival.
    expect((await readFrom(early.at)).ids).to.deep.equal([])
    await feedAll(projector(), log, 9)
    expect((await readFrom(early.at)).ids).to.deep.equal(whole.ids.slice(early.ids.length))
    expect((await readFrom(BEGINNING)).ids).to.deep.equal(whole.ids)
  })

  it('misses no fact that was replayed during a rebuild of the table, by a node of the store that lags', async () => {
    const { stream } = victim()
    const own = await factsOf(stream)
    await feedAll(projector(), poisoned(stream))
    const early = await readFrom(BEGINNING)
    await database.sql('truncate facts_v1')
    await database.sql('update checkpoints set position = -1')
    const last = log.events.findLast(event => event.stream === stream)?.position ?? 0n
    // The log ends with the parked facts there, so that the projector takes itself for live.
    const events = poisoned(stream).events.filter(({ position }) => position <= last)
    const half = { ...log, events }
    await feedAll(projector(), half)
    const stop = new AbortController()
    const run = await projector().beginRun(2n, stop.signal)
    run.caughtUp?.()
    const serving = run.background?.()
    await eventually(async () => (await parkedSummary(database.sql)).length === 0)
    stop.abort()
    await serving
    expect(await positionOf(database.sql, 'facts_v1')).to.equal(last)
    await feedAll(projector(), log, 9, 3n)
    expect((await readFrom(early.at)).ids).to.deep.equal(own)
  })

  describe('after a restore of Postgres from a backup that is older than its place', () => {
    it('misses no parked fact that is replayed while the projector catches up', async () => {
      const { stream } = victim()
      const own = await factsOf(stream)
      const { events } = poisoned(stream)
      await feedAll(projector(), { ...log, events })
      const early = await readFrom(BEGINNING)
      database = await postgres.ledgerDatabase()
      const last = log.events.findLastIndex(event => event.stream === stream)
      await feedAll(projector(), { ...log, events: events.slice(0, last + 1) })
      const world: World = { ...realWorld(), sleep: (_, signal) => realWorld().sleep(1, signal) }
      const stop = new AbortController()
      const run = await projector(database, { world }).beginRun(2n, stop.signal)
      const serving = run.background?.()
      for (const event of events.slice(last + 1)) await run.processBatch([event], event.position)
      run.caughtUp?.()
      await eventually(async () => (await parkedSummary(database.sql)).length === 0)
      stop.abort()
      await serving
      expect((await readFrom(early.at)).ids).to.deep.equal(own)
    })

    it('misses no fact that is replayed in another order than before', async () => {
      /** The events of all other streams stay parked. */
      const replayOnly = (event: StoredEvent): Promise<void> => {
        const store = log.open()
        const readStream: EventStore['readStream'] = (stream, options) =>
          store.readStream(stream === event.stream ? stream : 'none', options)
        return replay(keyOf(event), { ...store, readStream })
      }
      const first = victim()
      const second = log.events.findLast(({ type }) => type === 'InvoicePaid') ?? expect.fail()
      const poison = poisoned(first.stream, poisoned(second.stream))
      await feedAll(projector(), poison)
      await replayOnly(second)
      const early = await readFrom(BEGINNING)
      database = await postgres.ledgerDatabase()
      await feedAll(projector(), poison)
      await replayOnly(first)
      expect((await readFrom(early.at)).ids).to.deep.equal(await factsOf(first.stream))
    })
  })

  describe('when every table is rebuilt from the log', () => {
    const reset = () => database.transaction(emptyTablesOfLog)

    it('takes the time that large tables need, and not that of a request', async () => {
      await database.sql(`create function slowly() returns trigger language plpgsql as
        $$ begin perform pg_sleep(0.5); return null; end $$`)
      await database.sql('create trigger slow before insert on facts_head execute function slowly()')
      const transaction: Database['transaction'] = (work, timeoutMs = 200) => database.transaction(work, timeoutMs)
      expect(await resetTables({ ...database, transaction }, new AbortController().signal)).to.equal(true)
    })

    it('misses no fact that was parked until then', async () => {
      const { stream } = victim()
      const own = await factsOf(stream)
      await feedAll(projector(), poisoned(stream))
      const early = await readFrom(BEGINNING)
      await reset()
      await feedAll(projector(), log)
      expect((await readFrom(early.at)).ids).to.deep.equal(own)
      expect((await readFrom(BEGINNING)).ids).to.deep.equal([...early.ids, ...own])
    })

    it('misses no fact that was replayed and that it has not read yet', async () => {
      const { stream } = victim()
      await feedAll(projector(), poisoned(stream))
      const early = await readFrom(BEGINNING)
      await replay(keyOf(victim()))
      const late = await readFrom(early.at)
      await reset()
      await feedAll(projector(), log)
      expect((await readFrom(early.at)).ids).to.deep.equal(late.ids)
    })

    /** Empties the tables after the facts of one key were parked, which are the newest of a log with that key alone. */
    const resetWithNewestParked = async (): Promise<{ own: string[]; whole: MemoryLog; early: Read }> => {
      const { stream } = victim()
      const own = await factsOf(stream)
      const ofStream = (of: MemoryLog): MemoryLog => ({ ...of, events: of.events.filter(one => one.stream === stream) })
      await feedAll(projector(), ofStream(poisoned(stream)))
      const early = await readFrom(BEGINNING)
      await reset()
      expect(own.length).to.be.greaterThan(1)
      return { own, whole: ofStream(log), early }
    }

    it('misses no fact that was parked as the newest, when it reads after every transaction', async () => {
      const { own, whole, early } = await resetWithNewestParked()
      let read: Read = { ids: [], at: early.at }
      const watched: Database = {
        ...database,
        transaction: work =>
          database.transaction(work).finally(async () => {
            const next = await readFrom(read.at)
            read = { ids: [...read.ids, ...next.ids], at: next.at }
          }),
      }
      await feedAll(projector(watched), whole, 1)
      expect(read.ids).to.deep.equal(own)
    })

    it('misses no fact that was parked as the newest, when it follows before the table is filled again', async () => {
      const { own, whole } = await resetWithNewestParked()
      await feedAll(projector(), { ...whole, events: whole.events.slice(0, 1) })
      const [place = BEGINNING] = await database.sql<FeedPlace>(lastPlace.text, lastPlace.values)
      await feedAll(projector(), whole, 1)
      const { text, values } = factsAfter(place, 100)
      const rows = await database.sql<TailFact>(text, values)
      expect(rows.filter(row => !row.is_elsewhere).map(({ event }) => event.id)).to.deep.equal(own)
    })

    it('misses no fact that was parked again, when the tables are rebuilt a second time', async () => {
      const { stream } = victim()
      const own = await factsOf(stream)
      const last = log.events.findLast(event => event.stream === stream)?.position ?? 0n
      const { events } = poisoned(stream)
      await feedAll(projector(), { ...log, events: events.filter(({ position }) => position <= last) })
      await reset()
      await feedAll(projector(), poisoned(stream))
      const early = await readFrom(BEGINNING)
      await reset()
      await feedAll(projector(), log)
      expect((await readFrom(early.at)).ids).to.deep.equal(own)
    })

    it('reads from the start of a log that ends before a fact that was parked', async () => {
      await database.sql(`insert into log_identity (id, log) values (1, 'this log')`)
      await resetWithNewestParked()
      const [parked] = await database.sql<{ position: bigint }>('select max(position) as position from late_facts')
      await adoptReaderPositions(database.sql, 'this log', (parked?.position ?? 0n) - 1n)
      expect(await database.sql('select from late_facts')).to.have.length(0)
    })

    it('reads from the start of another log, and of a log that ends before its position', async () => {
      await feedAll(projector(), poisoned(victim().stream))
      for (const [of, head] of [
        ['another log', log.head()],
        ['this log', 1n],
      ] as const) {
        await database.sql(`insert into log_identity (id, log) values (1, 'this log') on conflict do nothing`)
        await database.sql('insert into facts_head (id, position) values (1, 2) on conflict do nothing')
        await reset()
        expect(await database.sql('select from facts_head')).to.have.length(1)
        await adoptReaderPositions(database.sql, of, head)
        expect(await database.sql('select from facts_head')).to.have.length(0)
        expect(await database.sql('select from late_facts')).to.have.length(0)
      }
    })
  })
})
