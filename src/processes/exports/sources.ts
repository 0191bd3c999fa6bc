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

type Asked = Pick<PageRequest, 'tenant' | 'filters'>

/** Where the rows of an export come from, and what they look like outside. */
export type Source = {
  /** The read model, and so the name of its checkpoint. */
  readonly name: string
  readonly category: string
  /** Of the view. */
  readonly columns: Columns
  readonly rows: (asked: Asked) => Query
  readonly count: (asked: Asked) => Query<{ count: bigint }>
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
  rows: asked => wholeOf(projection, asked),
  count: asked => countOf(projection, asked),
  view: row => view(row as R),
})

export const sources: Readonly<Record<ExportResource, Source>> = {
  orders: sourceOf(orders, orderColumns, orderView),
  invoices: sourceOf(invoices, invoiceColumns, invoiceView),
  payments: sourceOf(payments, paymentColumns, paymentView),
}
