import { expect } from 'chai'
import { accountAt, accountsPage, entriesPage, entryAt, positionAt } from '../../projections/books/queries.ts'
import type { Query } from '../../projections/listQueries.ts'
import { booksReadModel } from '../../src/feeds/booksWriter.ts'
import type { Database, Row, Sql } from '../../src/ports.ts'
import { BEGINNING, bookedEvents, logOf } from './moneyHistories.ts'
import { useTestPostgres } from '../feeds/fixtures.ts'

const CUSTOMERS = 2_000
const ENTRIES = 40_000
const LIMIT = 26
/** A page reads its rows, their postings and balances, and at most some rows of the pages of an index beside them. */
const READ_AT_MOST = 4 * LIMIT
const TABLES = ['journal_entries_v1', 'journal_postings_v1', 'account_balances_v1', 'accounts_v1', 'book_customers_v1']

type Step = {
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Step[]
}

/** The rows that all steps together read from tables. */
const rowsOf = (step: Step): number => {
  const perLoop = step['Actual Rows'] + (step['Rows Removed by Filter'] ?? 0)
  const own = step['Relation Name'] === undefined ? 0 : perLoop * step['Actual Loops']
  return (step.Plans ?? []).reduce((sum, inner) => sum + rowsOf(inner), own)
}

const literal = (value: unknown): string =>
  Array.isArray(value)
    ? `${value.length === 0 ? "'{}'" : `array[${value.map(literal).join(', ')}]`}::text[]`
    : typeof value === 'bigint' || typeof value === 'number'
      ? String(value)
      : `'${String(value).replaceAll("'", "''")}'`

/**
 * Postgres has statistics of a table only after it was analysed, and a prepared statement may keep the plan that it was given
 * when the tables were empty.
 */
describe('the queries of the books without statistics', () => {
  const postgres = useTestPostgres()
  let database: Database

  /** The entries of two tenants alternate in the first quarter; those of the rest are of one. */
  const fill = async (sql: Sql): Promise<void> => {
    const customer = `'receivables.USD.C-' || lpad((n / 2 % ${CUSTOMERS})::text, 5, '0')`
    const tenant = `case when n % 2 = 0 and n < ${ENTRIES / 4} then 'acme' else 'other' end`
    await sql(`insert into accounts_v1 select t, 'receivables.USD.C-' || lpad(c::text, 5, '0'), 'receivables', 'USD',
        'C-' || c, c from generate_series(0, ${CUSTOMERS - 1}) c, (values ('acme'), ('other')) of (t)`)
    await sql(`insert into account_balances_v1 select ${tenant}, ${customer}, n, 1, n, 0, 0
      from generate_series(0, ${ENTRIES}) n`)
    await sql(`insert into account_balances_v1 select ${tenant}, 'revenue.USD', n, -1, 0, n, 0
      from generate_series(0, ${ENTRIES}) n`)
    await sql(`insert into journal_postings_v1 select n, 0, ${customer}, 'debit', 1, 'USD'
        from generate_series(0, ${ENTRIES}) n union all
      select n, 1, 'revenue.USD', 'credit', 1, 'USD' from generate_series(0, ${ENTRIES}) n`)
    await sql(`insert into journal_entries_v1 select n, 'event-' || n, ${tenant},
        '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 second', 'invoice_approved', 'order-' || n / 4,
        'invoice-' || n / 4, case n % 3 when 0 then 'payment-' || n / 6 end, 'USD', null
      from generate_series(0, ${ENTRIES}) n`)
  }

  /** The look-ups of the projector for a batch with an approval, a payment, a failure and a void. */
  const queriesOfBatch = async (): Promise<Readonly<Record<string, Query<Row>>>> => {
    const step = { order: 1, key: 1, amount: 400n, skewMs: 0 }
    const kinds = ['defer', 'fail', 'void'] as const
    const log = await logOf([...BEGINNING, ...kinds.map(kind => [{ ...step, kind }])])
    const events = bookedEvents(log.events.filter(({ stream }) => !stream.startsWith('order-')))
    const actual: Query<Row>[] = []
    const watched: Sql = async <R extends Row>(text: string, values: readonly unknown[] = []): Promise<R[]> => {
      if (text.startsWith('select')) actual.push({ text, values })
      const isOfCustomers = text.startsWith('select id, customer_reference')
      return isOfCustomers ? (values[0] as string[]).map(id => ({ id, customer_reference: 'C' }) as never) : []
    }
    await booksReadModel.write(watched, events)
    expect(actual).to.have.length(3)
    return Object.fromEntries(actual.map((query, index) => [`look-up ${index} of a batch`, query]))
  }

  before(async () => {
    database = await postgres.ledgerDatabase()
    for (const table of TABLES) await database.sql(`alter table ${table} set (autovacuum_enabled = false)`)
  })

  const end = { tenant: 'acme', position: BigInt(ENTRIES), limit: LIMIT }
  const early = { ...end, before: 400n }
  const time = '2026-01-01T01:00:00Z'
  const customer = 'receivables.USD.C-00100'
  const queries: Readonly<Record<string, Query<Row>>> = {
    'a page of accounts': accountsPage({ ...end, after: 'receivables.USD.C-00500' }),
    'an account': accountAt('acme', customer, end.position),
    'the position at a time': positionAt('acme', time),
    'a page of the journal': entriesPage({ ...end, before: undefined }),
    'a late page of the journal': entriesPage(early),
    'an entry': entryAt('acme', 'event-1000', end.position),
    'the entries of an order': entriesPage({ ...end, before: undefined, order_id: 'order-1000' }),
    'the entries of an invoice': entriesPage({ ...end, before: undefined, invoice_id: 'invoice-1000' }),
    'the entries of a payment': entriesPage({ ...end, before: undefined, payment_id: 'payment-1000' }),
    'the entries of a payment on an account': entriesPage({
      ...end,
      before: undefined,
      payment_id: 'payment-1000',
      account: customer,
    }),
    'the entries of a customer': entriesPage({ ...end, before: undefined, account: customer }),
    'a page of the entries of an account that every entry has': entriesPage({ ...early, account: 'revenue.USD' }),
  }

  /** Prepared on the empty tables with the plan that fits any parameters, and run on the full ones. */
  const rowsReadByOldPlans = (named: Readonly<Record<string, Query<Row>>>): Promise<Record<string, number>> =>
    database.transaction(async sql => {
      await sql('set local plan_cache_mode = force_generic_plan')
      const texts = Object.entries(named)
      for (const [index, [, { text, values }]] of texts.entries()) {
        await sql(`prepare q${index} as ${text}`)
        await sql(`execute q${index}(${values.map(literal).join(', ')})`)
      }
      await fill(sql)
      const read: Record<string, number> = {}
      for (const [index, [name, { values }]] of texts.entries()) {
        const [row] = await sql<{ 'QUERY PLAN': readonly { readonly Plan: Step }[] }>(
          `explain (analyze, format json) execute q${index}(${values.map(literal).join(', ')})`,
        )
        read[name] = rowsOf(row?.['QUERY PLAN'][0]?.Plan ?? expect.fail(name))
        await sql(`deallocate q${index}`)
      }
      return read
    }, 120_000)

  it('read a page and no more, also by plans that were made for empty tables', async () => {
    const all = { ...queries, ...(await queriesOfBatch()) }
    for (const [name, rows] of Object.entries(await rowsReadByOldPlans(all)))
      expect(rows, name).to.be.at.most(READ_AT_MOST)
    for (const [name, { text, values }] of Object.entries(all)) {
      const [row] = await database.sql<{ 'QUERY PLAN': readonly { readonly Plan: Step }[] }>(
        `explain (analyze, format json) ${text}`,
        values,
      )
      expect(rowsOf(row?.['QUERY PLAN'][0]?.Plan ?? expect.fail(name)), `${name}, planned now`).to.be.at.most(
        READ_AT_MOST,
      )
    }
  })
})
