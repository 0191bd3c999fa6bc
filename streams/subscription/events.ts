import { z } from 'zod'
import { annotationsSchema, idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'
import { positionSchema } from '../position.ts'

/** The start: facts at this position of the log or after it, decided at this time or later. */
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
    /** The Kafka user that may read the topic; null when access is managed elsewhere. */
    principal: z.string().nullable(),
    /** The scopes of its creator, which the creator must keep for facts to be delivered. */
    scopes: z.array(z.string()),
    metadata: annotationsSchema,
    claim: idempotencyRecordSchema.nullable(),
  }),
  SubscriptionPaused: z.object({}),
  SubscriptionResumed: z.object({}),
  /** The facts are delivered again from another place. `to_position` is the end of the log at that time. */
  SubscriptionReplayed: z.object({
    replay: z.int(),
    ...start,
    to_position: positionSchema,
    claim: idempotencyRecordSchema.nullable(),
  }),
  /** Everything up to `to_position` is delivered again, or parked. */
  SubscriptionReplayCompleted: z.object({ replay: z.int() }),
  /**
   * Its creator has lost the right to the facts, or was not seen for long. `reason` is `tenant_suspended`,
   * `scope_revoked`, `creator_not_seen`, or a later addition.
   */
  SubscriptionStopped: z.object({ reason: z.string() }),
  SubscriptionDeleted: z.object({}),
}
export type SubscriptionEvent = EventOf<typeof subscriptionEvents>
