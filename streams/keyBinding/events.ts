import { z } from 'zod'
import { idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'

export const keyBindingEvents = {
  /** The idempotency key belongs to this request from now on. */
  KeyBound: z.object({ claim: idempotencyRecordSchema }),
}
export type KeyBindingEvent = EventOf<typeof keyBindingEvents>
