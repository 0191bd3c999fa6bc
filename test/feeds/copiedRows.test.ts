import { expect } from 'chai'
import { BOOKS_TABLES } from '../../projections/books/projection.ts'
import { READ_MODEL_TABLES } from '../../projections/index.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { deadLetterSummary } from '../../src/feeds/deadLetters.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import type { Database } from '../../src/ports.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { createRebuildHarness } from './rebuild/rebuildHarness.ts'
import { feedAll, fillLog, useTestPostgres } from './fixtures.ts'

/** So many that the rows of a batch are copied. */
const ORDERS = 150

describe('the rows of a large batch', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let copied: string[]
  let leftBehind: [string, unknown][]

  /** Notes the tables that rows are copied to. */
  const watched = (real: Database): Database => ({
    ...real,
    transaction: (work, timeoutMs) =>
      real.transaction(
        (sql, copy) =>
          work(sql, added => {
            copied.push(...added.map(({ table }) => table.name))
            return copy?.(added)
          }),
        timeoutMs,
      ),
  })
  const withoutCopies = (real: Database): Database => ({
    ...real,
    transaction: (work, timeoutMs) => real.transaction(sql => work(sql), timeoutMs),
  })
  const feed = (on: Database, size = 10_000): Promise<void> =>
    feedAll(
      projectorOf(
        { database: on, store: log.open(), world: realWorld() },
        readModels,
        (name, error) => void leftBehind.push([name, error]),
      ),
      log,
      size,
    )
  const contents = async (): Promise<unknown> =>
    Object.fromEntries(
      await Promise.all(
        READ_MODEL_TABLES.map(async table => [table, await database.sql(`select t::text from ${table} t order by 1`)]),
      ),
    )

  before(async () => {
    log = await fillLog(ORDERS)
  })
  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    copied = []
    leftBehind = []
  })
  afterEach(async () => {
    expect(leftBehind).to.deep.equal([])
    expect(await deadLetterSummary(database.sql)).to.deep.equal([])
  })

  it('are copied, and equal to those that are inserted', async () => {
    await feed(withoutCopies(database))
    const inserted = await contents()
    expect(inserted)
      .to.have.property('journal_postings_v1')
      .with.lengthOf.above(2 * ORDERS)
    database = await postgres.ledgerDatabase()
    await feed(watched(database))
    expect(new Set(copied)).to.include.members([
      ...['orders_v1', 'invoices_v1', 'payments_v1', 'facts_v1', 'audit_v2'],
      ...['journal_postings_v1', 'journal_entries_v1', 'account_balances_v1'],
    ])
    expect(await contents()).to.deep.equal(inserted)
  })

  it('are written although some of them are there already, as after a checkpoint was set back by hand', async () => {
    await feed(database)
    const before = await contents()
    await database.sql('update checkpoints set position = -1')
    await feed(watched(database), 700)
    expect(copied).to.include.members(['payments_v1', 'facts_v1', 'audit_v2'])
    expect(await contents()).to.deep.equal(before)
    await database.sql(
      `delete from facts_v1 where position in (select position from facts_v1 order by position offset 3)`,
    )
    await database.sql(`delete from payments_v1`)
    await database.sql('update checkpoints set position = -1')
    await feed(database)
    expect(await contents()).to.deep.equal(before)
  })

  it('are copied by a rebuild, and equal to the live ones', async () => {
    await feed(database)
    const before = await contents()
    const harness = createRebuildHarness(watched(database), log)
    copied = []
    for (const name of ['payments', 'facts', 'audit', 'books']) {
      const id = await harness.request('rebuild', name)
      await harness.execute()
      const { state, error, difference } = await harness.row(id)
      expect({ state, error, difference }, name).to.deep.equal({ state: 'succeeded', error: null, difference: null })
    }
    expect(copied).to.include.members(['payments_v1', 'facts_v1', 'audit_v2', 'journal_entries_v1'])
    expect(await contents()).to.deep.equal(before)
  })

  it('of an entry that is not balanced are refused by the database', async () => {
    const event = { position: 1n, event_id: 'e', tenant_id: 'acme', at: '2026-01-02T00:00:00.000Z', kind: 'k' }
    const entry = { ...event, order_id: 'o', invoice_id: 'i', payment_id: null, currency: 'EUR', reverses: null }
    const posting = { position: 1n, account: 'a', amount: 5n, currency: 'EUR' }
    const copyOf = (amount: bigint): Promise<unknown> =>
      database.transaction(async (_, copy) =>
        copy?.([
          {
            table: BOOKS_TABLES.postings,
            rows: [
              { ...posting, line: 0, direction: 'debit' },
              { ...posting, line: 1, direction: 'credit', amount },
            ],
          },
          { table: BOOKS_TABLES.entries, rows: [entry] },
        ]),
      )
    expect(await rejectionOf(copyOf(4n))).to.have.property('code', '23514')
    expect(await database.sql('select from journal_postings_v1')).to.deep.equal([])
    await copyOf(5n)
    expect(await database.sql('select from journal_entries_v1')).to.have.lengthOf(1)
  })
})
