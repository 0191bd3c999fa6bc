import { z } from 'zod'
import { idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'
import { idSchema } from '../ids.ts'
import { minorUnits } from '../money.ts'

export const refundEvents = {
  /** The request: caller, key and terms. Its outcome is in the payment's stream. */
  RefundInitiated: z.object({
    payment_id: idSchema('pay'),
    /** Null: the whole rest. */
    amount: minorUnits.nullable(),
    reason: z.string(),
    claim: idempotencyRecordSchema,
  }),
}
export type RefundEvent = EventOf<typeof refundEvents>
