import type { FactMap } from '../facts.ts'
import { exponentOf } from '../money.ts'
import type { OrderEvent } from './events.ts'

export const orderFacts: FactMap<OrderEvent> = {
  OrderCreated: ({ id, event: { data } }) => ({
    type: 'order.created',
    version: 1,
    data: {
      order_id: id,
      customer_reference: data.customer_reference,
      currency: data.currency,
      exponent: exponentOf(data.currency),
      total_amount: Number(data.total_amount),
    },
  }),
  OrderCancelled: ({ id, event: { data } }) => ({
    type: 'order.cancelled',
    version: 1,
    data: {
      order_id: id,
      reason: data.reason,
      currency: data.currency,
      exponent: exponentOf(data.currency),
      total_amount: Number(data.total_amount),
    },
  }),
  OrderChanged: 'internal',
  OrderInvoiced: 'internal',
  OrderReopened: 'internal',
  OrderCompleted: 'internal',
  OrderDeleted: 'internal',
}
