import { z } from 'zod'

/**
 * The idempotency record, the member `claim` of events. It is stored in the first event that the key created, so
 * binding the key and creating the resource are one append.
 */
export const idempotencyRecordSchema = z.object({
  /** HMAC-SHA-256 of tenant, caller, operation and key, hexadecimal: a reader of the log cannot test a guessed key. */
  key_hash: z.string(),
  /** The authenticated caller: subject and client. */
  caller: z.object({ subject: z.string(), client: z.string() }),
  /** SHA-256 of the RFC 8785 form of the validated request. */
  fingerprint: z.string(),
  /** The validated request, stored so that a reused key can be answered with the members that differ. */
  request: z.record(z.string(), z.json()),
  /** RFC 3339. From then on the key is refused; it is never free again. */
  expires_at: z.string(),
})
export type IdempotencyRecord = z.infer<typeof idempotencyRecordSchema>

export const annotationsSchema = z.record(z.string(), z.string())
/** A resource's `metadata`: texts by name, set by the client and opaque to the ledger. */
export type Annotations = z.infer<typeof annotationsSchema>
/** The most members of a resource's `metadata`. */
export const ANNOTATIONS_MAX = 50
