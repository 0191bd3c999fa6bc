import { expect } from 'chai'
import type { z } from 'zod'
import { apiKeyPage } from '../../projections/apiKeys/queries.ts'
import { auditPage } from '../../projections/audit/queries.ts'
import { accountsPage, entriesPage } from '../../projections/books/queries.ts'
import { factsPage, placeBefore } from '../../projections/facts/queries.ts'
import { invoicePage } from '../../projections/invoices/queries.ts'
import { operationPage } from '../../projections/operations/queries.ts'
import { orderPage } from '../../projections/orders/queries.ts'
import {
  EXAMINED_MAX,
  type Filters,
  type PageKey,
  type PageRow,
  pageOfRows,
  type Query,
} from '../../projections/listQueries.ts'
import { paymentPage } from '../../projections/payments/queries.ts'
import { deadLetterPage, subscriptionPage } from '../../projections/subscriptions/queries.ts'
import { openLists } from '../../src/compose/databasePools.ts'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import { routes } from '../../src/http/index.ts'
import type { Database, Row } from '../../src/ports.ts'
import { newDatabase } from '../support/postgres.ts'

/** Each list with each of its filters, on tables in which no row matches the filters, examines a bounded number of rows. */

const ROWS = 3 * EXAMINED_MAX
const LIMIT = 101
const END = BigInt(ROWS) + 1n
const TENANT = 'greedy'

/** A value of each filter that no row has. A filter without one fails the test, so that a new one is not forgotten. */
const VALUES: Readonly<Record<string, string>> = {
  state: 'pending',
  currency: 'JPY',
  created_after: '2020-01-01T00:00:00Z',
  created_before: '2040-01-01T00:00:00Z',
  order_id: 'none',
  invoice_id: 'none',
  payment_id: 'none',
  reference: 'none',
  kind: 'none',
  decision: 'denied',
  operation: 'none',
  subject: 'none',
  resource: 'none',
  correlation_id: 'none',
  account: 'none',
  customer_reference: 'none',
  type: 'none',
  from_time: '2040-01-01T00:00:00Z',
}
/** They choose the moment or the place, and are no filters. */
const NO_FILTERS = ['limit', 'cursor', 'as_of', 'as_of_position', 'from_position']

const request = (filters: Filters) => ({ tenant: TENANT, filters, limit: LIMIT })
const at = { tenant: TENANT, position: END, limit: LIMIT }
const accounts = ({ customer_reference: customer, ...filters }: Filters) =>
  accountsPage({ ...at, ...filters, after: undefined, customer })

const PAGES: Readonly<Record<string, (filters: Filters) => Query<never>>> = {
  list_orders: filters => orderPage(request(filters)),
  list_invoices: filters => invoicePage(request(filters)),
  list_payments: filters => paymentPage(request(filters)),
  list_operations: filters => operationPage(request(filters)),
  list_audit_records: filters => auditPage(request(filters)),
  list_installation_audit_records: filters => auditPage(request(filters)),
  list_api_keys: filters => apiKeyPage('2030-01-01T00:00:00Z')(request(filters)),
  list_subscriptions: filters => subscriptionPage(request(filters)),
  list_dead_letters: () => deadLetterPage('sub', 0n, LIMIT),
  list_accounts: accounts,
  read_trial_balance: accounts,
  list_account_entries: filters => entriesPage({ ...at, ...filters, before: undefined, account: 'cash' }),
  list_journal_entries: filters => entriesPage({ ...at, ...filters, before: undefined }),
  list_events: filters => factsPage({ tenant: TENANT, after: placeBefore(0n), limit: LIMIT, ...filters }),
}
/** They read one stream, or the heads of the log. */
const OTHER_LISTS = /_history$|^list_(audit_heads|periods)$/

const AT = `'2026-01-01T00:00:00Z'::timestamptz + n * interval '1 second'`
const COMMON = `lpad(n::text, 8, '0'), '${TENANT}', 1, ${AT}, now(), 'me'`
const COMMON_COLUMNS = 'id, tenant_id, revision, created_at, updated_at, created_by'
/** Accounts come to be after the position of the page. */
const TABLES: Readonly<Record<string, string>> = {
  orders_v1: `(${COMMON_COLUMNS}, state, currency, lines, total_amount, metadata)
    select ${COMMON}, 'open', 'USD', '[]', 1, '{}'`,
  invoices_v1: `(${COMMON_COLUMNS}, state, order_id, currency, amount_due, amount_paid, amount_pending, amount_refunded, due_date,
    metadata, reserved) select ${COMMON}, 'draft', 'one', 'USD', 1, 1, 0, 0, '2030-01-01', '{}', '{}'`,
  payments_v1: `(${COMMON_COLUMNS}, state, invoice_id, order_id, amount, currency, reference, settlement, refunded_amount, metadata)
    select ${COMMON}, 'failed', 'one', 'one', 1, 'USD', 'r' || n, 'immediate', 0, '{}'`,
  operations_v1: `(${COMMON_COLUMNS}, state, kind, resource, format, filters, metadata, expires_at, correlation_id, attempt)
    select ${COMMON}, 'expired', 'export', 'orders', 'csv', '{}', '{}', now(), 'c', 1`,
  audit_v2: `(id, position, tenant_id, created_at, decision, operation, check_name, subject, client, authority, correlation_id, count)
    select lpad(n::text, 8, '0'), n, '${TENANT}', ${AT}, 'granted', 'pay', 'scope', 'me', 'me', 'x', 'c', 1`,
  api_keys_v1: `(${COMMON_COLUMNS}, state, name, scopes, expires_at, metadata)
    select ${COMMON}, 'revoked', 'key', '[]', now(), '{}'`,
  parked_facts: `(delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts, first_failed_at)
    select 'sub', n, 'k', 's', 1, 'e', 't', '${TENANT}', 'r', 1, now()`,
  accounts_v1: `select '${TENANT}', lpad(n::text, 8, '0'), 'receivables', 'USD', 'customer', ${END + 1n}`,
  account_balances_v1: `select '${TENANT}', 'cash', n, 0, 1, 1, n`,
  journal_entries_v1: `select n, 'e' || n, '${TENANT}', ${AT}, 'invoice_approved', 'one', 'one', 'one', 'USD', null`,
  facts_v1: `select n, '${TENANT}', 'order.created', 's', ${AT}, '{}'`,
}

type Step = {
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly Step[]
}

/** The most rows that one step reads from a table. */
const mostRows = (step: Step): number => {
  const perLoop =
    step['Actual Rows'] + (step['Rows Removed by Filter'] ?? 0) + (step['Rows Removed by Index Recheck'] ?? 0)
  const own = step['Relation Name'] === undefined ? 0 : perLoop * step['Actual Loops']
  return Math.max(own, ...(step.Plans ?? []).map(mostRows))
}

type Explained = { readonly 'QUERY PLAN': readonly { readonly Plan: Step }[] }

describe('the rows that a page of a list examines', () => {
  let database: Database
  before(async () => {
    database = openLists({ connectionString: await newDatabase() })
    await createLedgerTables(database)
    // One that checks entries against their postings would refuse these.
    await database.sql('alter table journal_entries_v1 disable trigger user')
    for (const [table, rows] of Object.entries(TABLES))
      await database.sql(`insert into ${table} ${rows} from generate_series(1, ${ROWS}) n`)
    await database.sql(`insert into checkpoints (name, position, epoch) values ('facts_v1', ${END}, 1)
      on conflict (name) do update set position = excluded.position`)
  })
  after(() => database.close())

  const examined = async ({ text, values }: Query<Row>): Promise<number> => {
    const [row] = await database.sql<Explained>(`explain (analyze, format json) ${text}`, values)
    return Math.max(...(row?.['QUERY PLAN'] ?? []).map(({ Plan: plan }) => mostRows(plan)))
  }

  const lists = routes.filter(({ order, operationId }) => order !== undefined && !OTHER_LISTS.test(operationId))
  for (const { operationId, query } of lists) {
    const names = Object.keys((query as z.ZodObject).shape).filter(name => !NO_FILTERS.includes(name))
    const single = names.map(name => [name])
    for (const filtered of [[], ...single, ...single.flatMap(([a = '']) => names.filter(b => a < b).map(b => [a, b]))])
      it(`is bounded at ${operationId}, filtered by ${filtered.join(' and ') || 'nothing'}`, async () => {
        const page = PAGES[operationId]
        expect(page, 'the query of the list').to.be.a('function')
        for (const name of filtered) expect(VALUES, 'a value of each filter').to.have.property(name)
        const filters = Object.fromEntries(filtered.map(name => [name, VALUES[name]]))
        expect(await examined((page as (filters: Filters) => Query<Row>)(filters))).to.be.at.most(EXAMINED_MAX)
      })
  }

  it('does not keep an item from being found once, and in the order of the list, by following the cursors', async () => {
    const rare = ROWS / 2
    await database.sql(`update orders_v1 set currency = 'EUR' where id::int % ${rare} = 0`)
    const actual: string[] = []
    let pages = 0
    for (let after: PageKey | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
      const { text, values } = orderPage({ tenant: TENANT, filters: { currency: 'EUR' }, after, limit: LIMIT })
      type Found = PageRow<PageKey & Row>
      const { items, next } = pageOfRows(await database.sql<Found>(text, values), LIMIT - 1, ({ created_at, id }) => ({
        created_at,
        id,
      }))
      actual.push(...items.map(({ id }) => id))
      after = next
      pages += 1
      // A row that appears at the beginning of the list moves none of those that follow.
      await database.sql(`insert into orders_v1 (${COMMON_COLUMNS}, state, currency, lines, total_amount, metadata)
        values ('new-${pages}', '${TENANT}', 1, now() + interval '10 years', now(), 'me', 'open', 'EUR', '[]', 1, '{}')`)
    }
    const all = Array.from({ length: 2 }, (_, n) => String((2 - n) * rare).padStart(8, '0'))
    expect(actual).to.deep.equal(all)
    expect(pages).to.be.greaterThan(2)
  })
})
