import { expect } from 'chai'
import fc from 'fast-check'
import { BOOKS_TABLES, type BooksRows } from '../../projections/books/projection.ts'
import { accountsPage, entriesPage } from '../../projections/books/queries.ts'
import { READ_MODEL_TABLES } from '../../projections/index.ts'
import { booksReadModel } from '../../src/feeds/booksWriter.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { Database, Sql } from '../../src/ports.ts'
import { feedAll, limitChangedRows, useTestPostgres } from '../feeds/fixtures.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { anyMoneySteps, BEGINNING, bookedEvents, foldedBooks, logOf } from './moneyHistories.ts'

const END = 2n ** 63n - 1n
const CHANGED_ROWS_MAX = 20_000

describe('the tables of the books', () => {
  const postgres = useTestPostgres()
  let database: Database

  const empty = (): Promise<unknown> => database.sql(`truncate ${READ_MODEL_TABLES.join(', ')}, checkpoints`)
  const rowsOf = (table: string, order: string): Promise<object[]> =>
    database.sql(`select * from ${table} order by ${order}`)
  const tables = async (): Promise<BooksRows> => ({
    entries: (await rowsOf(BOOKS_TABLES.entries.name, 'position')) as never,
    postings: (await rowsOf(BOOKS_TABLES.postings.name, 'position, line')) as never,
    accounts: (await rowsOf(BOOKS_TABLES.accounts.name, 'position, code collate "C"')) as never,
    balances: (await rowsOf(BOOKS_TABLES.balances.name, 'position, account collate "C"')) as never,
  })
  const byCode = (one: { code: string; position: bigint }, other: typeof one): number =>
    one.position === other.position ? (one.code < other.code ? -1 : 1) : Number(one.position - other.position)
  const folded = (log: MemoryLog): BooksRows => {
    const { accounts, balances, ...rows } = foldedBooks(bookedEvents(log.events))
    return {
      ...rows,
      accounts: accounts.toSorted(byCode),
      balances: balances.toSorted((one, other) =>
        byCode({ ...one, code: one.account }, { ...other, code: other.account }),
      ),
    }
  }
  const feed = (log: MemoryLog, size: number): Promise<void> =>
    feedAll(
      projectorOf({ database, store: log.open(), world: realWorld() }, [booksReadModel], (name, error) => {
        throw new Error(name, { cause: error })
      }),
      log,
      size,
    )

  before(async () => {
    database = await postgres.ledgerDatabase()
  })
  beforeEach(empty)

  it('follow from the log, in batches of any size, and again when they are rebuilt', () =>
    fc.assert(
      fc.asyncProperty(anyMoneySteps, fc.integer({ min: 1, max: 40 }), async (groups, size) => {
        await empty()
        const log = await logOf(groups)
        await feed(log, size)
        const live = await tables()
        expect(live).to.deep.equal(folded(log))
        await empty()
        await feed(log, 1_000)
        expect(await tables()).to.deep.equal(live)
      }),
      { numRuns: 25 },
    ))

  it('follow from the log also when entries arrive late and events are repeated', () =>
    fc.assert(
      fc.asyncProperty(anyMoneySteps, fc.infiniteStream(fc.boolean()), async (groups, held) => {
        await empty()
        const log = await logOf(groups)
        const events = bookedEvents(log.events)
        // The events of a parked stream arrive after all others, in the order of their stream. An order is never behind.
        const late = new Set(events.map(({ id }) => id).filter(id => !id.startsWith('ord_') && held.next().value))
        const inTime = events.filter(({ id }) => !late.has(id))
        await database.transaction(sql => booksReadModel.write(sql, inTime))
        for (const event of events.filter(({ id }) => late.has(id)))
          await database.transaction(sql => booksReadModel.write(sql, [event]))
        expect(await tables()).to.deep.equal(folded(log))
        await database.transaction(sql => booksReadModel.write(sql, events))
        expect(await tables()).to.deep.equal(folded(log))
      }),
      { numRuns: 25 },
    ))

  it('are corrected after a late entry also when many later ones change its accounts', async () => {
    const own = await postgres.ledgerDatabase()
    const events = bookedEvents((await logOf(BEGINNING)).events)
    const late = events.find(({ event }) => event.type === 'InvoiceApproved') ?? expect.fail()
    await own.transaction(sql =>
      booksReadModel.write(
        sql,
        events.filter(event => event !== late),
      ),
    )
    const last = events.at(-1)?.position ?? 0n
    await own.sql(
      `insert into account_balances_v1 (tenant_id, account, position, change, debits, credits, pending)
        select 'acme', 'revenue.USD', $1 + n, 0, 7, n, 0 from generate_series(1, 60000) n`,
      [last],
    )
    await limitChangedRows(own, 'account_balances_v1', CHANGED_ROWS_MAX)
    await own.transaction(sql => booksReadModel.write(sql, [late]))
    const [wrong] = await own.sql<{ wrong: bigint; others: bigint }>(
      `select count(*) filter (where credits <> position - $1 + 2500 or debits <> 7) as wrong, count(*) as others
        from account_balances_v1 where account = 'revenue.USD' and position > $1`,
      [last],
    )
    expect(wrong).to.deep.equal({ wrong: 0n, others: 60_000n })
  })

  it('have the balances and entries of each position of the past', () =>
    fc.assert(
      fc.asyncProperty(anyMoneySteps, async groups => {
        await empty()
        const log = await logOf(groups)
        await feed(log, 1_000)
        for (const position of log.events.map(event => event.position).filter((_, n) => n % 5 === 0)) {
          const prefix = foldedBooks(bookedEvents(log.events.filter(event => event.position <= position)))
          const requested = { tenant: 'acme', position, limit: 1_000 }
          const { text, values } = accountsPage({ ...requested, after: undefined })
          const actual = await database.sql<{ code: string; debits: bigint; credits: bigint; pending: bigint }>(
            text,
            values,
          )
          const last = new Map(prefix.balances.map(one => [one.account, one]))
          expect(actual.map(({ code }) => code)).to.deep.equal([...last.keys()].toSorted())
          for (const { code, debits, credits, pending } of actual)
            expect({ debits, credits, pending }).to.deep.equal(
              (({ debits: d, credits: c, pending: p }) => ({ debits: d, credits: c, pending: p }))(
                last.get(code) ?? expect.fail(),
              ),
            )
          const page = entriesPage({ ...requested, before: undefined })
          const entries = await database.sql<{ event_id: string }>(page.text, page.values)
          expect(entries.map(({ event_id }) => event_id)).to.deep.equal(
            prefix.entries.map(({ event_id }) => event_id).toReversed(),
          )
        }
      }),
      { numRuns: 8 },
    ))

  describe('refuse', () => {
    const insertEntry = `insert into journal_entries_v1 (position, event_id, tenant_id, at, kind, order_id, invoice_id,
      currency) values (1, 'event', 'acme', now(), 'invoice_approved', 'o', 'i', 'USD')`
    const insertPostings = (...postings: readonly string[]): string =>
      `insert into journal_postings_v1 (position, line, account, direction, amount, currency) values ${postings.join(', ')}`
    const debit = `(1, 0, 'cash.USD', 'debit', 10, 'USD')`
    const credit = `(1, 1, 'revenue.USD', 'credit', 10, 'USD')`
    const refused = async (...statements: readonly string[]): Promise<void> => {
      const error = await rejectionOf(
        database.transaction(async sql => {
          for (const statement of statements) await sql(statement)
        }),
      )
      expect(error).to.include({ code: '23514' })
    }

    it('an entry without postings, with one posting, and with different sums', async () => {
      await refused(insertEntry)
      await refused(insertPostings(debit), insertEntry)
      await refused(insertPostings(debit, `(1, 1, 'revenue.USD', 'credit', 9, 'USD')`), insertEntry)
    })

    it('an entry of two currencies, and one of a currency that is not that of its postings', async () => {
      await refused(insertPostings(debit, `(1, 1, 'revenue.EUR', 'credit', 10, 'EUR')`), insertEntry)
      await refused(insertPostings(debit, credit), insertEntry.replace("'USD'", "'EUR'"))
    })

    it('a posting of zero, and one that is neither debit nor credit', async () => {
      await refused(insertPostings(`(1, 0, 'cash.USD', 'debit', 0, 'USD')`))
      await refused(insertPostings(`(1, 0, 'cash.USD', 'both', 1, 'USD')`))
    })

    it('an entry in a period that is closed for it, by an insert and by an update', async () => {
      await database.sql(`insert into book_closings_v1 (tenant_id, through, complete_to, first_open, position) values
        ('acme', '2026-01-01', 0, '2026-01-02T00:00:00Z', 9), ('other', '2030-01-01', 0, '2030-01-02T00:00:00Z', 10)`)
      const inside = insertEntry.replace('now()', `'2026-01-01T23:59:59.999Z'`)
      const both = (entry: string) => async (sql: Sql) => {
        await sql(insertPostings(debit, credit))
        await sql(entry)
      }
      const error = await rejectionOf(database.transaction(both(inside)))
      expect(error.message).to.equal('The journal entry at position 1 is in a closed period.')
      await database.transaction(both(insertEntry.replace('now()', `'2026-01-02T00:00:00Z'`)))
      await refused(`update journal_entries_v1 set at = '2026-01-01T00:00:00Z'`)
    })

    it('each change of an entry that unbalances it', async () => {
      await database.transaction(async sql => {
        await sql(insertPostings(debit, credit))
        await sql(insertEntry)
      })
      await refused('update journal_postings_v1 set amount = 11 where line = 0')
      await refused('delete from journal_postings_v1 where line = 0')
      await refused('delete from journal_postings_v1')
      await refused('update journal_postings_v1 set position = 2 where line = 0')
      await refused(insertPostings(`(1, 2, 'cash.USD', 'debit', 1, 'USD')`))
      await refused(`update journal_entries_v1 set currency = 'EUR'`)
      await database.sql('update journal_postings_v1 set amount = 12')
    })
  })

  it('have no accounts and no entries before the first event', async () => {
    const { text, values } = accountsPage({ tenant: 'acme', position: END, after: undefined, limit: 10 })
    expect(await database.sql(text, values)).to.deep.equal([])
  })
})
