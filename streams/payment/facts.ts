import { z } from 'zod'
import { amountMember, idMember, moneyMembers, orNull, textMember } from '../factMembers.ts'
import { announces, type FactMap } from '../facts.ts'
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

const terms = {
  payment_id: idMember('pay', 'The payment.'),
  invoice_id: idMember('inv', 'The invoice that the payment is for.'),
  order_id: idMember('ord', 'The order of that invoice.'),
  amount: amountMember('The amount of the payment.'),
  ...moneyMembers,
  reference: orNull(
    z.string(),
    'A token of the payer’s own reference, which is unique within the tenant: GET /payments/{payment_id} shows the ' +
      'reference.',
  ),
  settlement: z.enum(['immediate', 'deferred']).meta({
    description: 'Whether the payment counted immediately, or after a separate settlement.',
  }),
}
const example = {
  payment_id: 'pay_01JB3NBE7Y2H4J6KM8NPQRST0V',
  invoice_id: 'inv_01JB3NA3KX8M5PQRS0TV2WYZ4C',
  order_id: 'ord_01JB3N8Q6Z4T1V7W9XAC2E5GHK',
  amount: 4_990,
  currency: 'EUR',
  exponent: 2,
  reference: 'prf_01JB3NBE7Y2H4J6KM8NPQRST0V',
  settlement: 'immediate',
} as const

export const paymentFacts: FactMap<PaymentEvent> = {
  PaymentSucceeded: announces({
    type: 'payment.succeeded',
    version: 1,
    title: 'A payment succeeded',
    description: 'The amount counts as paid. Published once per payment, and never together with payment.failed.',
    schema: z.object(terms),
    example,
    data: ({ id, event: { data } }) => termsOf(id, data),
  }),
  PaymentFailed: announces({
    type: 'payment.failed',
    version: 1,
    title: 'A payment failed',
    description: 'Nothing was paid, and this payment is final. Published once per payment.',
    schema: z.object({
      ...terms,
      failure: z
        .object({
          code: textMember(
            'An error code of the contract, or a code of the system that settles payments. Other values may be added.',
          ),
        })
        .meta({ description: 'The reason of the failure.' }),
    }),
    example: { ...example, settlement: 'deferred', failure: { code: 'insufficient_funds' } },
    data: ({ id, event: { data } }) => ({ ...termsOf(id, data), failure: { code: data.code } }),
  }),
  PaymentRefunded: announces({
    type: 'payment.refunded',
    version: 1,
    title: 'A payment was refunded',
    description:
      'A part of the payment or all of it was refunded. Published once per refund, so possibly several times per payment.',
    schema: z.object({
      ...terms,
      refund_amount: amountMember('The amount of this refund.'),
      refunded_amount: amountMember('The sum of all refunds of the payment, including this one.'),
      reason: textMember('The reason, as given with the refund.'),
    }),
    example: { ...example, refund_amount: 1_000, refunded_amount: 1_500, reason: 'Arrived broken' },
    data: ({ id, event: { data } }) => ({
      ...termsOf(id, data),
      refund_amount: Number(data.refund_amount),
      refunded_amount: Number(data.refunded_amount),
      reason: data.reason,
    }),
  }),
  RefundRefused: 'internal',
  PaymentInitiated: 'internal',
  PaymentAccepted: 'internal',
}
