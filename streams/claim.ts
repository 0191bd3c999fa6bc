import { z } from 'zod'

/**
 * The idempotency record (contract.md §4). It is part of the first event of whatever the key created, so that binding
 * the key and creating the thing are one append, and neither can exist without the other.
 */
export const claimSchema = z.object({
  /** SHA-256 of tenant, caller, operation and key: the key itself is not kept. */
  key_hash: z.string(),
  /** The authenticated caller: subject and client. */
  caller: z.object({ subject: z.string(), client: z.string() }),
  /** SHA-256 of the RFC 8785 form of the validated request. */
  fingerprint: z.string(),
  /** The validated request, kept so that a changed repetition can be told where it differs. */
  request: z.record(z.string(), z.json()),
  /** RFC 3339. From here on the key is refused, never forgotten. */
  expires_at: z.string(),
})
export type Claim = z.infer<typeof claimSchema>

export const annotationsSchema = z.record(z.string(), z.string())
/** The caller's own `metadata` of a resource: text by text, opaque to the ledger. */
export type Annotations = z.infer<typeof annotationsSchema>
