import type { FactMap } from '../facts.ts'
import { exponentOf } from '../money.ts'
import type { InvoiceEvent } from './events.ts'

type Subject = { order_id: string; currency: string; amount_due: bigint }
const subjectOf = (id: string, { order_id, currency, amount_due }: Subject) => ({
  invoice_id: id,
  order_id,
  currency,
  exponent: exponentOf(currency),
  amount_due: Number(amount_due),
})

export const invoiceFacts: FactMap<InvoiceEvent> = {
  InvoiceApproved: ({ id, event: { data }, metadata }) => ({
    type: 'invoice.approved',
    version: 1,
    data: {
      ...subjectOf(id, data),
      due_date: data.due_date,
      approved_by: data.approved_by,
      approved_at: metadata.at,
    },
  }),
  InvoicePaid: ({ id, event: { data }, metadata }) => ({
    type: 'invoice.paid',
    version: 1,
    data: {
      ...subjectOf(id, data),
      amount_paid: Number(data.amount_paid),
      payment_id: data.payment_id,
      paid_at: metadata.at,
    },
  }),
  InvoiceVoided: ({ id, event: { data } }) => ({
    type: 'invoice.voided',
    version: 1,
    data: { ...subjectOf(id, data), reason: data.reason },
  }),
  InvoiceRaised: 'internal',
  PaymentReserved: 'internal',
  PaymentRefused: 'internal',
  PaymentReleased: 'internal',
  PaymentApplied: 'internal',
  RefundApplied: 'internal',
}
