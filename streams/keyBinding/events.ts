import { z } from 'zod'
import { claimSchema } from '../claim.ts'
import type { EventOf } from '../codec.ts'

export const keyBindingEvents = {
  /** The idempotency key belongs to this request from now on. */
  KeyBound: z.object({ claim: claimSchema }),
}
export type KeyBindingEvent = EventOf<typeof keyBindingEvents>
