import type { DataOf } from '../../streams/codec.ts'
import type { Annotations } from '../../streams/idempotencyRecord.ts'
import type { OrderEvent } from '../../streams/order/index.ts'
import { type Projection, RESOURCE_COLUMNS, type ResourceRow } from '../projection.ts'

/** A line as it is stored in JSON: amounts are numbers of minor units. */
export type OrderLine = { sku: string; description: string | null; quantity: number; unit_amount: number }

export type OrderRow = ResourceRow & {
  readonly state: 'open' | 'invoiced' | 'completed' | 'cancelled' | 'deleted'
  readonly customer_reference: string | null
  readonly description: string | null
  readonly currency: string
  readonly lines: readonly OrderLine[]
  readonly total_amount: bigint
  readonly metadata: Annotations
}

const linesOf = (lines: DataOf<OrderEvent, 'OrderCreated'>['lines']): readonly OrderLine[] =>
  lines.map(line => ({ ...line, unit_amount: Number(line.unit_amount) }))

export const orders: Projection<OrderEvent, OrderRow> = {
  name: 'orders_v1',
  category: 'order',
  columns: {
    ...RESOURCE_COLUMNS,
    customer_reference: 'text',
    description: 'text',
    currency: 'text',
    lines: 'json',
    total_amount: 'bigint',
    metadata: 'json',
  },
  first: 'OrderCreated',
  begin: ({ event }) => {
    if (event.type !== 'OrderCreated') throw new TypeError(event.type)
    const { claim: _, lines, ...terms } = event.data
    return { ...terms, lines: linesOf(lines), state: 'open' }
  },
  on: {
    OrderCreated: () => ({}),
    OrderChanged: (row, { event: { data } }) => ({
      customer_reference: data.customer_reference === undefined ? row.customer_reference : data.customer_reference,
      description: data.description === undefined ? row.description : data.description,
      metadata: data.metadata ?? row.metadata,
      lines: data.lines ? linesOf(data.lines) : row.lines,
      total_amount: data.total_amount ?? row.total_amount,
    }),
    OrderInvoiced: () => ({ state: 'invoiced' }),
    OrderInvoiceRefused: () => ({}),
    OrderReopened: () => ({ state: 'open' }),
    OrderCompleted: () => ({ state: 'completed' }),
    OrderCancelled: () => ({ state: 'cancelled' }),
    OrderDeleted: () => ({ state: 'deleted' }),
  },
}
