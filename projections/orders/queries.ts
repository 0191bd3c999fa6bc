import type { OrderId } from '../../streams/ids.ts'
import { exponentOf } from '../../streams/money.ts'
import { type PageRequest, type PageRow, pageOf, type Query } from '../listQueries.ts'
import { resourceView } from '../projection.ts'
import { type OrderRow, orders } from './projection.ts'

export const orderPage = (request: PageRequest): Query<PageRow<OrderRow>> =>
  pageOf(orders, request, { usualState: 'completed' })

/** The view of an order, over HTTP and in exports. A deleted order has none. */
export const orderView = (row: OrderRow) => ({
  id: row.id as OrderId,
  state: row.state as Exclude<OrderRow['state'], 'deleted'>,
  ...resourceView(row),
  customer_reference: row.customer_reference,
  description: row.description,
  currency: row.currency,
  exponent: exponentOf(row.currency),
  lines: [...row.lines],
  total_amount: Number(row.total_amount),
})
