import { z } from 'zod'
import { annotationsSchema, idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'

const quota = z.object({ requests: z.int(), window_seconds: z.int() })
export type KeyQuota = z.output<typeof quota>

/**
 * The stored part of a secret. It is worthless without the pepper, which neither store nor database has: the secret is
 * derived from the nonce with the pepper, and recognised by its keyed hash.
 */
const secret = {
  /** Random, hexadecimal; different for every secret. */
  nonce: z.string(),
  /** HMAC-SHA-256 of the secret, hexadecimal. */
  hash: z.string(),
  /** RFC 3339. The secret is invalid from then on. */
  expires_at: z.string(),
}

export const apiKeyEvents = {
  ApiKeyIssued: z.object({
    name: z.string(),
    scopes: z.array(z.string()),
    /** Null: the default limits apply. */
    quota: quota.nullable(),
    /** The lifetime of each of its secrets. */
    lifetime_days: z.int(),
    ...secret,
    metadata: annotationsSchema,
    claim: idempotencyRecordSchema.nullable(),
  }),
  /** The previous secret stays valid until `previous_until`; any older one ends now. */
  ApiKeyRotated: z.object({ ...secret, previous_until: z.string(), claim: idempotencyRecordSchema.nullable() }),
  ApiKeyRevoked: z.object({}),
}
export type ApiKeyEvent = EventOf<typeof apiKeyEvents>
