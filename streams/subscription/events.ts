import { z } from 'zod'
import { annotationsSchema, claimSchema } from '../claim.ts'
import type { EventOf } from '../codec.ts'
import { positionSchema } from '../position.ts'

/** Where the facts begin: those at this position of the log or behind it that were decided at this time or later. */
const start = {
  from_position: positionSchema,
  /** RFC 3339; null for any time. */
  from_time: z.string().nullable(),
}

export const subscriptionEvents = {
  SubscriptionCreated: z.object({
    /** Types of facts, each once. */
    types: z.array(z.string()),
    ...start,
    /** The Kafka user who may read the topic; null where somebody else sees to that. */
    principal: z.string().nullable(),
    /** What its creator may do, and must go on being allowed to do, for facts to be delivered. */
    scopes: z.array(z.string()),
    metadata: annotationsSchema,
    claim: claimSchema.nullable(),
  }),
  SubscriptionPaused: z.object({}),
  SubscriptionResumed: z.object({}),
  /** From here on the facts are delivered again from another place. `to_position` is how far the log went at that time. */
  SubscriptionReplayed: z.object({
    replay: z.int(),
    ...start,
    to_position: positionSchema,
    claim: claimSchema.nullable(),
  }),
  /** Everything up to `to_position` was delivered again, or is parked. */
  SubscriptionReplayCompleted: z.object({ replay: z.int() }),
  /** Its creator may no longer have what it delivers. `reason` is `tenant_suspended` or `scope_revoked`, or one to come. */
  SubscriptionStopped: z.object({ reason: z.string() }),
  SubscriptionDeleted: z.object({}),
}
export type SubscriptionEvent = EventOf<typeof subscriptionEvents>
