import type { InvoiceId, OrderId, PaymentId } from '../../streams/ids.ts'
import { exponentOf } from '../../streams/money.ts'
import { type PageRequest, type PageRow, pageOf, type Query } from '../listQueries.ts'
import { resourceView } from '../projection.ts'
import { type PaymentRow, payments } from './projection.ts'

export const paymentPage = (request: PageRequest): Query<PageRow<PaymentRow>> =>
  pageOf(payments, request, { columns: ['reference', 'invoice_id', 'order_id'], usualState: 'succeeded' })

export const paymentView = (row: PaymentRow) => ({
  id: row.id as PaymentId,
  state: row.state,
  ...resourceView(row),
  invoice_id: row.invoice_id as InvoiceId,
  order_id: row.order_id as OrderId,
  amount: Number(row.amount),
  currency: row.currency,
  exponent: exponentOf(row.currency),
  reference: row.reference,
  settlement: row.settlement,
  failure: row.failure_code === null ? null : { code: row.failure_code },
  refunded_amount: Number(row.refunded_amount),
})
