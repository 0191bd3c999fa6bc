import type { Annotations } from '../../streams/idempotencyRecord.ts'
import type { PaymentEvent } from '../../streams/payment/index.ts'
import { type Projection, RESOURCE_COLUMNS, type ResourceRow } from '../projection.ts'

export type PaymentRow = ResourceRow & {
  readonly state: 'pending' | 'succeeded' | 'failed' | 'partially_refunded' | 'refunded'
  readonly invoice_id: string
  readonly order_id: string
  readonly amount: bigint
  readonly currency: string
  readonly reference: string | null
  readonly settlement: 'immediate' | 'deferred'
  readonly failure_code: string | null
  readonly refunded_amount: bigint
  readonly metadata: Annotations
}

export const payments: Projection<PaymentEvent, PaymentRow> = {
  name: 'payments_v1',
  category: 'payment',
  columns: {
    ...RESOURCE_COLUMNS,
    invoice_id: 'text',
    order_id: 'text',
    amount: 'bigint',
    currency: 'text',
    reference: 'text',
    settlement: 'text',
    failure_code: 'text',
    refunded_amount: 'bigint',
    metadata: 'json',
  },
  first: 'PaymentInitiated',
  begin: ({ event }) => {
    if (event.type !== 'PaymentInitiated') throw new TypeError(event.type)
    const { claim: _, reference_stream: _stream, ...terms } = event.data
    return { ...terms, state: 'pending', failure_code: null, refunded_amount: 0n }
  },
  on: {
    PaymentInitiated: () => ({}),
    PaymentAccepted: () => ({}),
    PaymentSucceeded: () => ({ state: 'succeeded' }),
    PaymentRefunded: (row, { event: { data } }) => ({
      state: data.refunded_amount === row.amount ? 'refunded' : 'partially_refunded',
      refunded_amount: data.refunded_amount,
    }),
    RefundRefused: () => ({}),
    PaymentFailed: (_, { event: { data } }) => ({ state: 'failed', failure_code: data.code }),
  },
}
