import { expect } from 'chai'
import { invoicePage } from '../../projections/invoices/queries.ts'
import { orderPage } from '../../projections/orders/queries.ts'
import { type Filters, type PageRequest, type Query } from '../../projections/listQueries.ts'
import { paymentPage } from '../../projections/payments/queries.ts'
import type { Database } from '../../src/ports.ts'
import { useTestPostgres } from '../feeds/fixtures.ts'
import { rowsRead } from './rowsRead.ts'

const ROWS = 20_000
const LIMIT = 26
/** A page that searched the whole list would read every row of the tenant. */
const READ_AT_MOST = 300

const COMMON = `n::text, 'acme', 1, '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 second', now(), 'me'`
const COMMON_COLUMNS = 'id, tenant_id, revision, created_at, updated_at, created_by'
const TABLES = {
  payments_v1: [
    'state, invoice_id, order_id, amount, currency, reference, settlement, refunded_amount, metadata',
    `case when n = 7 then 'failed' else 'succeeded' end, 'inv_' || n, 'ord_' || n, 1, 'USD', 'r' || n, 'immediate', 0, '{}'`,
  ],
  invoices_v1: [
    'state, order_id, currency, amount_due, amount_paid, amount_pending, amount_refunded, due_date, metadata, reserved',
    `case when n = 7 then 'draft' else 'paid' end, 'ord_' || n, 'USD', 1, 1, 0, 0, '2030-01-01', '{}', '{}'`,
  ],
  orders_v1: [
    'state, currency, lines, total_amount, metadata',
    `case when n = 7 then 'open' else 'completed' end, 'USD', '[]', 1, '{}'`,
  ],
} as const

describe('a page of a long list', () => {
  const postgres = useTestPostgres()
  let database: Database

  before(async () => {
    database = await postgres.ledgerDatabase()
    for (const [table, [columns, values]] of Object.entries(TABLES)) {
      await database.sql(`insert into ${table} (${COMMON_COLUMNS}, ${columns})
        select ${COMMON}, ${values} from generate_series(1, ${ROWS}) n`)
      await database.sql(`analyze ${table}`)
    }
  })

  const request = (filters: Filters, after?: PageRequest['after']): PageRequest => ({
    tenant: 'acme',
    filters,
    limit: LIMIT,
    ...(after && { after }),
  })
  const LAST = { created_at: '2026-01-01T00:00:20Z', id: '20' }
  const pages: readonly (readonly [title: string, table: keyof typeof TABLES, query: Query<object>, rows: number])[] = [
    ['at the beginning', 'payments_v1', paymentPage(request({})), LIMIT],
    ['at the end', 'payments_v1', paymentPage(request({}, LAST)), 19],
    ['in a rare state, of payments', 'payments_v1', paymentPage(request({ state: 'failed' })), 1],
    ['in a state that no payment has', 'payments_v1', paymentPage(request({ state: 'pending' })), 0],
    ['in the usual state', 'payments_v1', paymentPage(request({ state: 'succeeded' })), LIMIT],
    ['in a rare state, from a cursor', 'payments_v1', paymentPage(request({ state: 'failed' }, LAST)), 1],
    ['of one order', 'payments_v1', paymentPage(request({ order_id: 'ord_7' })), 1],
    ['of one invoice', 'payments_v1', paymentPage(request({ invoice_id: 'inv_7' })), 1],
    ['with one reference', 'payments_v1', paymentPage(request({ reference: 'r7' })), 1],
    ['in a rare state, of invoices', 'invoices_v1', invoicePage(request({ state: 'draft' })), 1],
    ['in a rare state, of orders', 'orders_v1', orderPage(request({ state: 'open' })), 1],
  ]
  for (const [title, table, query, rows] of pages)
    it(`${title} reads few rows`, async () => {
      expect(await database.sql(query.text, query.values)).to.have.length(rows)
      expect(await rowsRead(database, query, table)).to.be.at.most(READ_AT_MOST)
    })
})
