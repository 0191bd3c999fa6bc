import { BOOKS } from '../../../projections/books/projection.ts'
import { allPostings, type PostingAt, postingCount } from '../../../projections/books/queries.ts'
import { postingView } from '../../../projections/bookViews.ts'
import { invoices } from '../../../projections/invoices/projection.ts'
import { invoiceView } from '../../../projections/invoices/queries.ts'
import { orders } from '../../../projections/orders/projection.ts'
import { orderView } from '../../../projections/orders/queries.ts'
import { countOf, type PageRequest, type Query, wholeOf } from '../../../projections/listQueries.ts'
import { payments } from '../../../projections/payments/projection.ts'
import { paymentView } from '../../../projections/payments/queries.ts'
import type { Columns, Projection, ResourceRow } from '../../../projections/projection.ts'
import type { ExportResource } from '../../../streams/operation/index.ts'
import type { Row } from '../../ports.ts'
import { invoiceColumns, orderColumns, paymentColumns, postingColumns } from './exportColumns.ts'

type Selection = Pick<PageRequest, 'tenant' | 'filters'>

export type ExportedReadModel = {
  /** The read model, and so the name of its checkpoint. */
  readonly name: string
  readonly columns: Columns
  readonly rows: (selection: Selection) => Query
  readonly count: (selection: Selection) => Query<{ count: bigint }>
  readonly view: (row: Row) => object
}

const exportedReadModel = <R extends ResourceRow>(
  projection: Pick<Projection<never, R>, 'name' | 'columns'>,
  columns: Columns,
  view: (row: R) => object,
): ExportedReadModel => ({
  name: projection.name,
  columns,
  rows: selection => wholeOf(projection, selection),
  count: selection => countOf(projection, selection),
  view: row => view(row as R),
})

const journal: ExportedReadModel = {
  name: BOOKS,
  columns: postingColumns,
  rows: allPostings,
  count: postingCount,
  view: row => postingView(row as PostingAt),
}

export const exportedReadModels: Readonly<Record<ExportResource, ExportedReadModel>> = {
  orders: exportedReadModel(orders, orderColumns, orderView),
  invoices: exportedReadModel(invoices, invoiceColumns, invoiceView),
  payments: exportedReadModel(payments, paymentColumns, paymentView),
  journal_entries: journal,
}
