import type { postingView } from '../../../projections/bookViews.ts'
import type { invoiceView } from '../../../projections/invoices/queries.ts'
import type { orderView } from '../../../projections/orders/queries.ts'
import type { paymentView } from '../../../projections/payments/queries.ts'
import type { resourceView } from '../../../projections/projection.ts'

/** The columns of exported files, in their order, with their types: one for each member of the view of a resource. */

/** The column type of each member of a view: an amount stays a number, a list is JSON. */
type ColumnsOf<F extends (row: never) => object, View = ReturnType<F>> = {
  readonly [K in keyof View]-?: NonNullable<View[K]> extends string
    ? 'text' | 'timestamptz' | 'date'
    : NonNullable<View[K]> extends number
      ? 'bigint' | 'integer'
      : 'json'
}

const VIEW_COLUMNS = {
  version: 'integer',
  tenant_id: 'text',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
  created_by: 'text',
  metadata: 'json',
} as const satisfies ColumnsOf<typeof resourceView>

export const orderColumns: ColumnsOf<typeof orderView> = {
  id: 'text',
  state: 'text',
  ...VIEW_COLUMNS,
  customer_reference: 'text',
  description: 'text',
  currency: 'text',
  exponent: 'integer',
  lines: 'json',
  total_amount: 'bigint',
}

export const invoiceColumns: ColumnsOf<typeof invoiceView> = {
  id: 'text',
  state: 'text',
  ...VIEW_COLUMNS,
  order_id: 'text',
  currency: 'text',
  exponent: 'integer',
  amount_due: 'bigint',
  amount_paid: 'bigint',
  amount_pending: 'bigint',
  amount_refunded: 'bigint',
  due_date: 'date',
  approved_by: 'text',
  approved_at: 'timestamptz',
  paid_at: 'timestamptz',
}

export const paymentColumns: ColumnsOf<typeof paymentView> = {
  id: 'text',
  state: 'text',
  ...VIEW_COLUMNS,
  invoice_id: 'text',
  order_id: 'text',
  amount: 'bigint',
  currency: 'text',
  exponent: 'integer',
  reference: 'text',
  settlement: 'text',
  failure: 'json',
  refunded_amount: 'bigint',
}

/** The journal has one row for each posting, so a spreadsheet can sum debits and credits. */
export const postingColumns: ColumnsOf<typeof postingView> = {
  entry_id: 'text',
  at: 'timestamptz',
  position: 'text',
  event_id: 'text',
  kind: 'text',
  description: 'text',
  order_id: 'text',
  invoice_id: 'text',
  payment_id: 'text',
  reverses: 'text',
  line: 'integer',
  account: 'text',
  direction: 'text',
  amount: 'bigint',
  currency: 'text',
  exponent: 'integer',
  balance: 'bigint',
  account_name: 'text',
  customer_reference: 'text',
}
