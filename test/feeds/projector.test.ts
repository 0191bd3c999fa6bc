import { expect } from 'chai'
import { READ_MODEL_TABLES } from '../../projections/index.ts'
import { Gap } from '../../projections/projection.ts'
import { positionOf, EpochSuperseded, acquireCheckpoint } from '../../src/feeds/checkpoints.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import type { ReadModel } from '../../src/feeds/readModel.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import type { Feed } from '../../src/feeds/feedLoop.ts'
import { type Database, type StoredEvent, Unavailable } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { beginRun, feedAll, fillLog, foldedRows, rowsIn, useTestPostgres, type Table, TABLES } from './fixtures.ts'

describe('the projector', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let leftBehind: [string, unknown][]

  const projector = (models = readModels, on = database): Feed =>
    projectorOf(
      { database: on, store: log.open(), world: realWorld() },
      models,
      (name, error) => void leftBehind.push([name, error]),
    )
  const head = (): bigint => log.head()
  const allTables = async (): Promise<unknown[]> =>
    Promise.all([
      ...TABLES.map(table => rowsIn(database, table)),
      rowsIn(database, 'facts_v1', 'type, subject, event::text'),
    ])

  before(async () => {
    log = await fillLog(12)
  })
  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    leftBehind = []
  })

  it('makes every table equal to the folds of the streams', async () => {
    await feedAll(projector(), log)
    const folded = await foldedRows(log)
    for (const table of TABLES) {
      const rows = await rowsIn(database, table)
      expect(rows.length, table).to.be.at.least(12)
      expect(rows).to.deep.equal(folded[table])
    }
    expect(leftBehind).to.deep.equal([])
    for (const { name } of readModels) expect(await positionOf(database.sql, name)).to.equal(head())
  })

  it('has the same result in batches of any size', async () => {
    await feedAll(projector(), log)
    const whole = await allTables()
    for (const size of [1, 7, 50]) {
      database = await postgres.ledgerDatabase()
      await feedAll(projector(), log, size)
      expect(await allTables(), `batches of ${size}`).to.deep.equal(whole)
    }
  })

  it('changes nothing when it receives events again', async () => {
    const run = await beginRun(projector())
    await run.processBatch(log.events, head())
    const before = await allTables()
    await run.processBatch(log.events, head())
    expect(await allTables()).to.deep.equal(before)
    await database.sql('update checkpoints set position = -1')
    await feedAll(projector(), log, 33)
    expect(await allTables()).to.deep.equal(before)
  })

  it('decodes events when they arrive, and has the same result', async () => {
    await feedAll(projector(), log)
    const whole = await allTables()
    database = await postgres.ledgerDatabase()
    const run = await beginRun(projector())
    // Copies of the events, which can no longer be decoded once their data is gone.
    const events: StoredEvent[] = log.events.map(event => ({ ...event }))
    for (const event of events) run.prepare?.(event)
    for (const event of events) Object.assign(event, { data: {} })
    await run.processBatch(events, head())
    expect(await allTables()).to.deep.equal(whole)
  })

  it('reads the rows of those streams only that began before the batch', async () => {
    const requested: unknown[] = []
    const watched = ({ sql, transaction, ...others }: Database): Database => ({
      ...others,
      sql,
      transaction: (work, timeoutMs) =>
        transaction(
          inTransaction =>
            work((text, values) => {
              if (text.startsWith('select id,')) requested.push(values?.[0])
              return inTransaction(text, values)
            }),
          timeoutMs,
        ),
    })
    const orders = readModels.filter(({ name }) => name === 'orders_v1')
    const events = log.events.filter(({ stream }) => stream.startsWith('order-'))
    const [first, second] = [events.slice(0, 5), events.slice(5)]
    const run = await beginRun(projector(orders, watched(database)))
    for (const batch of [first, second]) await run.processBatch(batch, batch.at(-1)?.position ?? 0n)
    const idsIn = (some: readonly StoredEvent[]): Set<string> =>
      new Set(some.map(({ stream }) => stream.slice('order-'.length)))
    const both = [...idsIn(first)].filter(id => idsIn(second).has(id))
    expect(both).to.have.length.above(0)
    expect(requested).to.deep.equal([both])
    expect(await rowsIn(database, 'orders_v1')).to.deep.equal((await foldedRows(log)).orders_v1)
  })

  it('writes the same rows again in a rebuild', async () => {
    await feedAll(projector(), log)
    const before = await allTables()
    await database.sql(`truncate ${READ_MODEL_TABLES.join(', ')}`)
    await database.sql('update checkpoints set position = -1')
    await feedAll(projector(), log, 40)
    expect(await allTables()).to.deep.equal(before)
  })

  it('continues from its checkpoint', async () => {
    const first = await beginRun(projector())
    const half = log.events.slice(0, 60)
    await first.processBatch(half, half.at(-1)?.position ?? 0n)
    const second = await beginRun(projector(), 2n)
    expect(second.after).to.equal(half.at(-1)?.position)
    await second.processBatch(log.events.slice(60), head())
    const folded = await foldedRows(log)
    for (const table of TABLES) expect(await rowsIn(database, table), table).to.deep.equal(folded[table])
    expect(leftBehind).to.deep.equal([])
  })

  it('begins at the earliest checkpoint, and writes no event twice to the other models', async () => {
    const begun = await beginRun(projector())
    const processed = log.events[59]?.position ?? 0n
    await begun.processBatch(log.events.slice(0, 60), processed)
    await database.sql('truncate orders_v1')
    await database.sql(`update checkpoints set position = -1 where name = 'orders_v1'`)
    const earliest = new Map<string, bigint>()
    const watched = readModels.map(
      (model): ReadModel => ({
        ...model,
        write: (sql, events) => {
          earliest.set(model.name, events[0]?.position ?? 0n)
          return model.write(sql, events)
        },
      }),
    )
    await feedAll(projector(watched), log)
    expect(earliest.get('orders_v1')).to.equal(log.events[0]?.position)
    for (const name of ['invoices_v1', 'payments_v1', 'facts_v1'])
      expect(earliest.get(name) ?? 0n, name).to.satisfy((position: bigint) => position > processed)
    expect(await rowsIn(database, 'orders_v1')).to.have.length(12)
  })

  describe('keeps rows and checkpoint together', () => {
    /** A database on which one statement fails. */
    const failingAt = (matches: (text: string) => boolean, failure: Error): Database => ({
      ...database,
      transaction: work =>
        database.transaction(sql =>
          work((text, values) => (matches(text) ? Promise.reject(failure) : sql(text, values))),
        ),
    })
    const untouched = async (): Promise<void> => {
      for (const table of TABLES) expect(await rowsIn(database, table), table).to.deep.equal([])
      for (const { name } of readModels) expect(await positionOf(database.sql, name), name).to.equal(0n)
    }

    for (const table of TABLES)
      it(`when the database becomes unavailable while it writes ${table}`, async () => {
        const gone = new Unavailable('database', { effect: 'none' })
        const feed = projector(
          readModels,
          failingAt(text => text.startsWith(`insert into ${table}`), gone),
        )
        expect(await rejectionOf(feedAll(feed, log))).to.equal(gone)
        await untouched()
        expect(leftBehind).to.deep.equal([])
      })

    it('when one model fails while others still have statements to send, which are sent before the end', async () => {
      const gone = new Unavailable('database', { effect: 'none' })
      const sent: string[] = []
      let sentBeforeEnd = 0
      const counting: Database = {
        ...database,
        transaction: work =>
          database.transaction(async sql => {
            const send: typeof sql = (text, values) => {
              sent.push(text)
              return text.startsWith('insert into orders_v1') ? Promise.reject(gone) : sql(text, values)
            }
            return await work(send).finally(() => (sentBeforeEnd = sent.length))
          }),
      }
      expect(await rejectionOf(feedAll(projector(readModels, counting), log))).to.equal(gone)
      await untouched()
      expect(sent.at(-1)).to.include('insert into journal_entries_v1')
      expect(sent.length).to.equal(sentBeforeEnd)
    })

    it('when the checkpoint cannot move', async () => {
      const gone = new Unavailable('database', { effect: 'unknown' })
      const feed = projector(
        readModels,
        failingAt(text => text.startsWith('update checkpoints'), gone),
      )
      expect(await rejectionOf(feedAll(feed, log))).to.equal(gone)
      await untouched()
    })

    it('when another process has taken over in the meantime', async () => {
      const old = await beginRun(projector())
      await beginRun(projector(), 2n)
      expect(await rejectionOf(old.processBatch(log.events, head()))).to.be.instanceOf(EpochSuperseded)
      await untouched()
      expect(leftBehind).to.deep.equal([])
    })

    it('when another process takes over one model alone', async () => {
      const old = await beginRun(projector())
      await acquireCheckpoint(database.sql, 'invoices_v1', 2n)
      expect(await rejectionOf(old.processBatch(log.events, head()))).to.be.instanceOf(EpochSuperseded)
      await untouched()
    })
  })

  describe('leaves behind a model that cannot continue, and reports the error,', () => {
    const others = (name: Table): readonly Table[] => TABLES.filter(table => table !== name)
    const expectOnlyBehind = async (name: Table, broken: MemoryLog): Promise<void> => {
      await feedAll(projector(), broken, 10)
      expect(leftBehind.map(([model]) => model).filter(model => model !== 'facts_v1')).to.deep.equal([name])
      expect((await positionOf(database.sql, name)) < head()).to.equal(true)
      const folded = await foldedRows(log)
      for (const table of others(name)) {
        expect(await positionOf(database.sql, table), table).to.equal(head())
        expect(await rowsIn(database, table), table).to.deep.equal(folded[table])
      }
    }
    const isPaid = ({ type }: StoredEvent): boolean => type === 'InvoicePaid'

    it('at a gap', async () => {
      const at = log.events.findIndex(isPaid)
      await expectOnlyBehind('invoices_v1', { ...log, events: log.events.toSpliced(at - 1, 1) })
      expect(leftBehind[0]?.[1]).to.be.instanceOf(Gap)
    })

    it('and writes it again later, from its checkpoint', async () => {
      await database.sql('alter table invoices_v1 rename to elsewhere')
      await feedAll(projector(), log, 10)
      expect(leftBehind.map(([model]) => model)).to.deep.equal(['invoices_v1'])
      await database.sql('alter table elsewhere rename to invoices_v1')
      await feedAll(projector(), log, 10, 2n)
      expect(await positionOf(database.sql, 'invoices_v1')).to.equal(head())
      const folded = await foldedRows(log)
      expect(await rowsIn(database, 'invoices_v1')).to.deep.equal(folded.invoices_v1)
    })
  })
})
