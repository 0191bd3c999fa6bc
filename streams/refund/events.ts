import { z } from 'zod'
import { claimSchema } from '../claim.ts'
import type { EventOf } from '../codec.ts'
import { idSchema } from '../ids.ts'
import { minorUnits } from '../money.ts'

export const refundEvents = {
  /** The claim: who asked for this refund, under which key. What it came to is on the payment's stream. */
  RefundInitiated: z.object({
    payment_id: idSchema('pay'),
    /** Null: all that is left. */
    amount: minorUnits.nullable(),
    reason: z.string(),
    claim: claimSchema,
  }),
}
export type RefundEvent = EventOf<typeof refundEvents>
