import { z } from 'zod'
import { idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'
import { idSchema } from '../ids.ts'
import { minorUnits } from '../money.ts'

export const refundEvents = {
  /** The claim of the refund: caller and key. Its outcome is on the payment's stream. */
  RefundInitiated: z.object({
    payment_id: idSchema('pay'),
    /** Null: the whole rest. */
    amount: minorUnits.nullable(),
    reason: z.string(),
    claim: idempotencyRecordSchema,
  }),
}
export type RefundEvent = EventOf<typeof refundEvents>
