import type { FactMap } from '../facts.ts'
import { exponentOf } from '../money.ts'
import type { PaymentTerms } from './decider.ts'
import type { PaymentEvent } from './events.ts'

const termsOf = (id: string, terms: PaymentTerms) => ({
  payment_id: id,
  invoice_id: terms.invoice_id,
  order_id: terms.order_id,
  amount: Number(terms.amount),
  currency: terms.currency,
  exponent: exponentOf(terms.currency),
  reference: terms.reference,
  settlement: terms.settlement,
})

export const paymentFacts: FactMap<PaymentEvent> = {
  PaymentSucceeded: ({ id, event: { data } }) => ({ type: 'payment.succeeded', version: 1, data: termsOf(id, data) }),
  PaymentFailed: ({ id, event: { data } }) => ({
    type: 'payment.failed',
    version: 1,
    data: { ...termsOf(id, data), failure: { code: data.code } },
  }),
  PaymentRefunded: ({ id, event: { data } }) => ({
    type: 'payment.refunded',
    version: 1,
    data: {
      ...termsOf(id, data),
      refund_amount: Number(data.refund_amount),
      refunded_amount: Number(data.refunded_amount),
      reason: data.reason,
    },
  }),
  RefundRefused: 'internal',
  PaymentInitiated: 'internal',
  PaymentAccepted: 'internal',
}
