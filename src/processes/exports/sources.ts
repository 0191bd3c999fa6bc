import { invoices } from '../../../projections/invoices/projection.ts'
import { invoiceColumns, invoiceView } from '../../../projections/invoices/queries.ts'
import { orders } from '../../../projections/orders/projection.ts'
import { orderColumns, orderView } from '../../../projections/orders/queries.ts'
import { countOf, type PageRequest, type Query, wholeOf } from '../../../projections/page.ts'
import { payments } from '../../../projections/payments/projection.ts'
import { paymentColumns, paymentView } from '../../../projections/payments/queries.ts'
import type { Columns, Projection, ResourceRow } from '../../../projections/projection.ts'
import type { ExportResource } from '../../../streams/operation/index.ts'
import type { Row } from '../../ports.ts'

/** The sources of exports: for each resource its read model, and the view that is written. */

type Selection = Pick<PageRequest, 'tenant' | 'filters'>

export type Source = {
  /** The read model, and so the name of its checkpoint. */
  readonly name: string
  readonly category: string
  /** The columns of the view. */
  readonly columns: Columns
  readonly rows: (selection: Selection) => Query
  readonly count: (selection: Selection) => Query<{ count: bigint }>
  readonly view: (row: Row) => object
}

const sourceOf = <R extends ResourceRow>(
  projection: Pick<Projection<never, R>, 'name' | 'category' | 'columns'>,
  columns: Columns,
  view: (row: R) => object,
): Source => ({
  name: projection.name,
  category: projection.category,
  columns,
  rows: selection => wholeOf(projection, selection),
  count: selection => countOf(projection, selection),
  view: row => view(row as R),
})

export const sources: Readonly<Record<ExportResource, Source>> = {
  orders: sourceOf(orders, orderColumns, orderView),
  invoices: sourceOf(invoices, invoiceColumns, invoiceView),
  payments: sourceOf(payments, paymentColumns, paymentView),
}
