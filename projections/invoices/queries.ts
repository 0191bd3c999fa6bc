import type { InvoiceId, OrderId } from '../../streams/ids.ts'
import { exponentOf } from '../../streams/money.ts'
import { type PageRequest, type PageRow, pageOf, type Query } from '../listQueries.ts'
import { resourceView } from '../projection.ts'
import { type InvoiceRow, invoices } from './projection.ts'

export const invoicePage = (request: PageRequest): Query<PageRow<InvoiceRow>> =>
  pageOf(invoices, request, { columns: ['order_id'], usualState: 'paid' })

const subjectOf = (row: InvoiceRow) => ({
  id: row.id as InvoiceId,
  state: row.state,
  ...resourceView(row),
  order_id: row.order_id as OrderId,
  currency: row.currency,
  exponent: exponentOf(row.currency),
})
const datesOf = ({ due_date, approved_by, approved_at, paid_at }: InvoiceRow) => ({
  ...{ due_date, approved_by, approved_at, paid_at },
})

/** The row of an invoice in a file of an export. Files do not follow API-Version: their columns stay. */
export const invoiceView = (row: InvoiceRow) => ({
  ...subjectOf(row),
  amount_due: Number(row.amount_due),
  amount_paid: Number(row.amount_paid),
  amount_pending: Number(row.amount_pending),
  amount_refunded: Number(row.amount_refunded),
  ...datesOf(row),
})

/** An invoice over HTTP, in the newest version of the contract. */
export const invoiceResource = (row: InvoiceRow) => ({
  ...subjectOf(row),
  total_amount: Number(row.amount_due),
  amount_paid: Number(row.amount_paid),
  amount_pending: Number(row.amount_pending),
  /** The most that a new payment may have. */
  amount_outstanding: row.state === 'voided' ? 0 : Number(row.amount_due - row.amount_paid - row.amount_pending),
  amount_refunded: Number(row.amount_refunded),
  ...datesOf(row),
})
