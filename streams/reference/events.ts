import { z } from 'zod'
import type { EventOf } from '../codec.ts'
import { idSchema } from '../ids.ts'

export const referenceEvents = {
  /** The business reference belongs to this payment, in this tenant, unless the payment is refused and releases it. */
  ReferenceTaken: z.object({ payment_id: idSchema('pay') }),
  /** Another payment asked for the reference and was refused, recorded so that a retry gets the same response. */
  ReferenceRefused: z.object({ payment_id: idSchema('pay'), held_by: idSchema('pay') }),
  /** The payment was refused, so the reference is free again. */
  ReferenceReleased: z.object({ payment_id: idSchema('pay') }),
}
export type ReferenceEvent = EventOf<typeof referenceEvents>
