import { z } from 'zod'
import { annotationsSchema, idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'
import { idSchema } from '../ids.ts'
import { minorUnits } from '../money.ts'

const terms = {
  invoice_id: idSchema('inv'),
  order_id: idSchema('ord'),
  amount: minorUnits,
  currency: z.string(),
  /** A token (src/personalTexts/personalTexts.ts). */
  reference: z.string().nullable(),
  settlement: z.enum(['immediate', 'deferred']),
}

export const paymentEvents = {
  /** The request: caller, key and terms. The invoice has not accepted the amount yet. */
  PaymentInitiated: z.object({
    ...terms,
    metadata: annotationsSchema,
    claim: idempotencyRecordSchema,
    /** The stream in which the reference is unique; null without a reference. */
    reference_stream: idSchema('ref').nullable(),
  }),
  /** Deferred: the invoice holds the amount, the settlement is to come. */
  PaymentAccepted: z.object(terms),
  PaymentSucceeded: z.object(terms),
  /** `refund_amount` goes back to the payer; `refunded_amount` is the sum of all refunds including this one. */
  PaymentRefunded: z.object({
    ...terms,
    refund_id: idSchema('rfd'),
    refund_amount: minorUnits,
    refunded_amount: minorUnits,
    reason: z.string(),
  }),
  /** The payment refused the refund, recorded so that a retry gets the same response. */
  RefundRefused: z.object({ refund_id: idSchema('rfd'), code: z.literal('payment_state_conflict') }),
  /**
   * `code` is a rejection of the contract or the settler's own code; `held_by` is the payment that has the reference.
   */
  PaymentFailed: z.object({ ...terms, code: z.string(), held_by: idSchema('pay').nullable() }),
}
export type PaymentEvent = EventOf<typeof paymentEvents>
