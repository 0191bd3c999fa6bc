import { amountMember, idMember, moneyMembers, orNull } from '../factMembers.ts'
import { announces, type FactMap } from '../facts.ts'
import { exponentOf } from '../money.ts'
import { z } from 'zod'
import type { OrderEvent } from './events.ts'

const order_id = idMember('ord', 'The order.')
const total_amount = amountMember('The sum of the lines.')
const example = { order_id: 'ord_01JB3N8Q6Z4T1V7W9XAC2E5GHK', currency: 'EUR', exponent: 2, total_amount: 4_990 }

export const orderFacts: FactMap<OrderEvent> = {
  OrderCreated: announces({
    type: 'order.created',
    version: 1,
    title: 'An order was created',
    description: 'The first fact of an order. The order is open: its lines and its total may still change.',
    schema: z.object({
      order_id,
      customer_reference: orNull(
        z.string(),
        'A token of the customer’s own reference, equal for orders with the same reference until it is erased: ' +
          'GET /orders/{order_id} shows the reference.',
      ),
      ...moneyMembers,
      total_amount,
    }),
    example: { ...example, customer_reference: 'prs_01JB3N8Q6Z4T1V7W9XAC2E5GHK' },
    data: ({ id, event: { data } }) => ({
      order_id: id,
      customer_reference: data.customer_reference,
      currency: data.currency,
      exponent: exponentOf(data.currency),
      total_amount: Number(data.total_amount),
    }),
  }),
  OrderCancelled: announces({
    type: 'order.cancelled',
    version: 1,
    title: 'An order was cancelled',
    description: 'The last fact of an order that was never paid; none of its invoices is due.',
    schema: z.object({
      order_id,
      reason: orNull(z.string(), 'The reason, as given with the cancellation.'),
      ...moneyMembers,
      total_amount,
    }),
    example: { ...example, reason: 'Ordered twice' },
    data: ({ id, event: { data } }) => ({
      order_id: id,
      reason: data.reason,
      currency: data.currency,
      exponent: exponentOf(data.currency),
      total_amount: Number(data.total_amount),
    }),
  }),
  OrderChanged: 'internal',
  OrderInvoiced: 'internal',
  OrderInvoiceRefused: 'internal',
  OrderReopened: 'internal',
  OrderCompleted: 'internal',
  OrderDeleted: 'internal',
}
