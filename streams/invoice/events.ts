import { z } from 'zod'
import { annotationsSchema, idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'
import { idSchema } from '../ids.ts'
import { minorUnits } from '../money.ts'

/** The members that every event of an invoice has beside its own, so a fact can be made from one event. */
const subject = { order_id: idSchema('ord'), currency: z.string(), amount_due: minorUnits }
const payment = { payment_id: idSchema('pay'), amount: minorUnits }

export const invoiceEvents = {
  InvoiceRaised: z.object({
    ...subject,
    due_date: z.string(),
    metadata: annotationsSchema,
    claim: idempotencyRecordSchema.nullable(),
  }),
  /** `reason` is absent where none was given. */
  InvoiceApproved: z.object({
    ...subject,
    due_date: z.string(),
    approved_by: z.string(),
    reason: z.string().optional(),
  }),
  InvoiceVoided: z.object({ ...subject, reason: z.string().nullable() }),
  /** A deferred payment holds its amount until it settles or fails. */
  PaymentReserved: z.object(payment),
  /** The invoice refused the payment, recorded so that a retry gets the same response. */
  PaymentRefused: z.object({ ...payment, code: z.enum(['payment_not_allowed', 'payment_exceeds_due']) }),
  PaymentReleased: z.object(payment),
  /** The amount is paid: at once for an immediate payment, at settlement for a deferred one. */
  PaymentApplied: z.object(payment),
  /** A part of the paid amount went back to the payer. The due amount does not grow again. */
  RefundApplied: z.object({ ...payment, refund_id: idSchema('rfd') }),
  /** Nothing is due any more. Follows the last PaymentApplied in the same append. */
  InvoicePaid: z.object({ ...subject, amount_paid: minorUnits, payment_id: idSchema('pay') }),
}
export type InvoiceEvent = EventOf<typeof invoiceEvents>
