import { expect } from 'chai'
import { type FactsPageRow, factsPage, type FeedPlace, placeBefore } from '../../projections/facts/queries.ts'
import { emptyTablesOfLog } from '../../src/logIdentity/logIdentity.ts'
import { resetTables } from '../../src/logIdentity/tablesReset.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { deadLettersOfKey, deadLetterSummary, requestForDeadLetters } from '../../src/feeds/deadLetters.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import { runFeeds } from '../../src/feeds/feedLoop.ts'
import { type Database, type EventStore, type Sql, type StoredEvent, Unavailable, type World } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { createReports, feedAll, fillLog, useTestPostgres } from './fixtures.ts'
import { eventually } from '../support/eventually.ts'

const TENANT = 'acme'
const BEGINNING = placeBefore(0n)
const PAGE = 7

type Read = { readonly ids: string[]; at: FeedPlace }

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
  /** Runs the projector until it has read the log and replayed what was parked. */
  const catchUp = async (on = database, store = log.open(), isDone = isNothingParked): Promise<void> => {
    const stop = new AbortController()
    const dependencies = { store, database: on, world: realWorld(), report: createReports().report }
    const running = runFeeds('arrivals', [projector(on, { store })], dependencies, stop.signal)
    await eventually(async () => (await positionOf(on.sql, 'facts_v1')) >= log.head() && (await isDone()))
    stop.abort()
    await running
  }
  const isNothingParked = async (): Promise<boolean> => (await deadLetterSummary(database.sql)).length === 0
  /** The operator's replay of the dead letters, after the cause is repaired. */
  const replay = async (key: string, store = log.open()): Promise<void> => {
    await requestForDeadLetters(database.sql, { delivery: 'facts_v1', key }, 'replay')
    await catchUp(database, store, async () => (await deadLettersOfKey(database.sql, 'facts_v1', key)).length === 0)
  }
  /** A database whose transactions are followed by a reader, committed or not. */
  const followed = (reader: Read): Database => ({
    ...database,
    transaction: work =>
      database.transaction(work).finally(async () => {
        const next = await readFrom(reader.at)
        reader.ids.push(...next.ids)
        reader.at = next.at
      }),
  })

  it('reads every other fact in the order of the log while a batch with an undecodable event is written', async () => {
    const { stream } = victim()
    const own = await factsOf(stream)
    const expected = (await allFacts(log)).filter(id => !own.includes(id))
    const reader: Read = { ids: [], at: BEGINNING }
    await feedAll(projector(followed(reader)), poisoned(stream))
    expect(reader.ids).to.deep.equal(expected)
  })

  it('reads dead letters after their replay, at the tail, in the order of their key', async () => {
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

  describe('after a restore of Postgres from a backup that is older than its place', () => {
    it('misses no fact that was parked after the backup, and is not parked now', async () => {
      const { stream } = victim()
      const own = await factsOf(stream)
      await feedAll(projector(), poisoned(stream))
      const early = await readFrom(BEGINNING)
      database = await postgres.ledgerDatabase()
      const reader: Read = { ids: [], at: early.at }
      await catchUp(followed(reader))
      expect(own.length).to.be.greaterThan(1)
      expect((await readFrom(early.at)).ids).to.deep.equal(own)
      expect(reader.ids).to.deep.equal(own)
      expect((await readFrom(BEGINNING)).ids).to.deep.equal([...early.ids, ...own])
    })

    it('misses no fact whose parking failed after it was recorded', async () => {
      const { stream } = victim()
      const own = await factsOf(stream)
      const lost: Database = { ...database, transaction: work => database.transaction(sql => work(failing(sql))) }
      const failing =
        (sql: Sql): Sql =>
        (text, values) =>
          text.includes('insert into parked_facts')
            ? Promise.reject(new Unavailable('database', { effect: 'none' }))
            : sql(text, values)
      await feedAll(projector(lost), poisoned(stream)).catch(() => undefined)
      const early = await readFrom(BEGINNING)
      await catchUp()
      expect((await readFrom(early.at)).ids.toSorted()).to.include.members(own)
    })

    it('misses no fact that is replayed while the node that answers the projector lags', async () => {
      const { stream } = victim()
      const own = await factsOf(stream)
      const { events } = poisoned(stream)
      await feedAll(projector(), { ...log, events })
      const early = await readFrom(BEGINNING)
      database = await postgres.ledgerDatabase()
      const last = log.events.findLastIndex(event => event.stream === stream)
      const world: World = { ...realWorld(), sleep: (_, signal) => realWorld().sleep(1, signal) }
      const stop = new AbortController()
      const run = await projector(database, { world }).beginRun(2n, stop.signal)
      const serving = run.background?.()
      const feed = (all: readonly StoredEvent[]) => Promise.all(all.map(one => run.processBatch([one], one.position)))
      await feed(log.events.slice(0, last + 1))
      run.caughtUp?.()
      // Whatever is replayed too early is replayed in this time.
      await eventually(async () => log.events.at(-1)?.type === 'ReplayBegun')
      await feed(log.events.slice(last + 1))
      await eventually(isNothingParked)
      stop.abort()
      await serving
      expect((await readFrom(early.at)).ids).to.deep.equal(own)
    })

    it('misses no fact that is replayed in another order than before', async () => {
      /** The events of all other invoices stay parked. */
      const replayOnly = (event: StoredEvent): Promise<void> => {
        const store = log.open()
        const isHidden = (stream: string) => stream.startsWith('invoice-') && stream !== event.stream
        const readStream: EventStore['readStream'] = (stream, options) =>
          store.readStream(isHidden(stream) ? 'none' : stream, options)
        return replay(keyOf(event), { ...store, readStream })
      }
      const first = victim()
      const second = log.events.findLast(({ type }) => type === 'InvoicePaid') ?? expect.fail()
      const own = await factsOf(first.stream)
      const poison = poisoned(first.stream, poisoned(second.stream))
      await feedAll(projector(), poison)
      await replayOnly(second)
      const early = await readFrom(BEGINNING)
      database = await postgres.ledgerDatabase()
      await feedAll(projector(), poison)
      await replayOnly(first)
      expect((await readFrom(early.at)).ids).to.deep.equal(own)
    })
  })

  describe('when every table is rebuilt from the log', () => {
    const reset = () => database.transaction(emptyTablesOfLog)

    it('takes the time that large tables need, and not that of a request', async () => {
      await database.sql(`create function slowly() returns trigger language plpgsql as
        $$ begin perform pg_sleep(0.5); return null; end $$`)
      await database.sql('create trigger slow before truncate on facts_v1 execute function slowly()')
      const transaction: Database['transaction'] = (work, timeoutMs = 200) => database.transaction(work, timeoutMs)
      expect(await resetTables({ ...database, transaction }, new AbortController().signal)).to.equal(true)
    })

    it('misses no fact that was parked until then', async () => {
      const { stream } = victim()
      const own = await factsOf(stream)
      await feedAll(projector(), poisoned(stream))
      const early = await readFrom(BEGINNING)
      await reset()
      await catchUp()
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
      await catchUp()
      expect((await readFrom(early.at)).ids).to.deep.equal(late.ids)
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
      await catchUp()
      expect((await readFrom(early.at)).ids).to.deep.equal(own)
    })
  })
})
