import { z } from 'zod'
import { annotationsSchema, claimSchema } from '../claim.ts'
import type { EventOf } from '../codec.ts'

const quota = z.object({ requests: z.int(), window_seconds: z.int() })
export type KeyQuota = z.output<typeof quota>

/**
 * What is kept of a secret. Neither of the two is worth anything without the pepper, which no store and no database has:
 * the secret is derived from the nonce with it, and recognised by the hash with it.
 */
const secret = {
  /** Random, hexadecimal; another one for every secret. */
  nonce: z.string(),
  /** HMAC-SHA-256 of the secret, hexadecimal. */
  hash: z.string(),
  /** RFC 3339. From then on the secret opens nothing. */
  expires_at: z.string(),
}

export const apiKeyEvents = {
  ApiKeyIssued: z.object({
    name: z.string(),
    scopes: z.array(z.string()),
    /** Null: the limits of every caller suffice. */
    quota: quota.nullable(),
    /** How long each of its secrets is good for. */
    lifetime_days: z.int(),
    ...secret,
    metadata: annotationsSchema,
    claim: claimSchema.nullable(),
  }),
  /** The secret before this one goes on until `previous_until`, and any older one is at its end. */
  ApiKeyRotated: z.object({ ...secret, previous_until: z.string(), claim: claimSchema.nullable() }),
  ApiKeyRevoked: z.object({}),
}
export type ApiKeyEvent = EventOf<typeof apiKeyEvents>
