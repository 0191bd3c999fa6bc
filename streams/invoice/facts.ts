import { z } from 'zod'
import { amountMember, dateMember, idMember, moneyMembers, orNull, textMember, timeMember } from '../factMembers.ts'
import { announces, type FactMap } from '../facts.ts'
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

const subject = {
  invoice_id: idMember('inv', 'The invoice.'),
  order_id: idMember('ord', 'The order of the invoice.'),
  ...moneyMembers,
  amount_due: amountMember('The total amount of the invoice; payments are not deducted.'),
}
const example = {
  invoice_id: 'inv_01JB3NA3KX8M5PQRS0TV2WYZ4C',
  order_id: 'ord_01JB3N8Q6Z4T1V7W9XAC2E5GHK',
  currency: 'EUR',
  exponent: 2,
  amount_due: 4_990,
}

export const invoiceFacts: FactMap<InvoiceEvent> = {
  InvoiceApproved: announces({
    type: 'invoice.approved',
    version: 1,
    title: 'An invoice was approved',
    description:
      'The invoice may be paid from now on. This is the first fact of an invoice, unless it is voided before.',
    schema: z.object({
      ...subject,
      due_date: dateMember('The date by which the invoice is due.'),
      approved_by: textMember('The subject of the credential that approved the invoice.'),
      approved_at: timeMember('The time of the approval.'),
    }),
    example: { ...example, due_date: '2026-12-11', approved_by: 'dana', approved_at: '2026-11-11T09:30:00.123Z' },
    data: ({ id, event: { data }, metadata }) => ({
      ...subjectOf(id, data),
      due_date: data.due_date,
      approved_by: data.approved_by,
      approved_at: metadata.at,
    }),
  }),
  InvoicePaid: announces({
    type: 'invoice.paid',
    version: 1,
    title: 'An invoice is paid',
    description: 'The invoice is paid in full. Published once per invoice; a later refund does not revoke it.',
    schema: z.object({
      ...subject,
      amount_paid: amountMember('The sum of the payments, which is the amount due.'),
      payment_id: idMember('pay', 'The payment that completed the amount.'),
      paid_at: timeMember('The time of that payment.'),
    }),
    example: {
      ...example,
      amount_paid: 4_990,
      payment_id: 'pay_01JB3NBE7Y2H4J6KM8NPQRST0V',
      paid_at: '2026-11-12T16:05:41.007Z',
    },
    data: ({ id, event: { data }, metadata }) => ({
      ...subjectOf(id, data),
      amount_paid: Number(data.amount_paid),
      payment_id: data.payment_id,
      paid_at: metadata.at,
    }),
  }),
  InvoiceVoided: announces({
    type: 'invoice.voided',
    version: 1,
    title: 'An invoice was voided',
    description: 'The last fact of an invoice. Nothing was paid, and nothing can be paid.',
    schema: z.object({ ...subject, reason: orNull(z.string(), 'The reason, as given with the voiding.') }),
    example: { ...example, reason: 'Wrong address' },
    data: ({ id, event: { data } }) => ({ ...subjectOf(id, data), reason: data.reason }),
  }),
  InvoiceRaised: 'internal',
  PaymentReserved: 'internal',
  PaymentRefused: 'internal',
  PaymentReleased: 'internal',
  PaymentApplied: 'internal',
  RefundApplied: 'internal',
}
