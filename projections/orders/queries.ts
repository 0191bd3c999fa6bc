import type { OrderId } from '../../streams/ids.ts'
import { exponentOf } from '../../streams/money.ts'
import { type PageRequest, type PageRow, pageOf, type Query } from '../listQueries.ts'
import { type ResourceView, resourceView } from '../projection.ts'
import { type OrderLine, type OrderRow, orders } from './projection.ts'

export const orderPage = (request: PageRequest): Query<PageRow<OrderRow>> =>
  pageOf(orders, request, { usualState: 'completed' })

/** The view of an order, over HTTP and in exports. A deleted order has none. */
export type OrderView = ResourceView & {
  readonly id: OrderId
  readonly state: Exclude<OrderRow['state'], 'deleted'>
  readonly customer_reference: string | null
  readonly description: string | null
  readonly currency: string
  readonly exponent: number
  readonly lines: OrderLine[]
  readonly total_amount: number
}

export const orderView = (row: OrderRow): OrderView => ({
  id: row.id as OrderId,
  state: row.state as OrderView['state'],
  ...resourceView(row),
  customer_reference: row.customer_reference,
  description: row.description,
  currency: row.currency,
  exponent: exponentOf(row.currency),
  lines: [...row.lines],
  total_amount: Number(row.total_amount),
})
