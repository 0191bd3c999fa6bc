import { z } from 'zod'
import type { EventOf } from '../codec.ts'

const standing = {
  /** The operator's words, for the auditors. */
  reason: z.string(),
}
const right = { ...standing, subject: z.string(), scope: z.string() }

export const tenantEvents = {
  /** From here on nobody of the tenant may do anything, and nothing is delivered to it. */
  TenantSuspended: z.object(standing),
  TenantReinstated: z.object(standing),
  /** Whatever the subject's credentials say, this scope is not among them any more. */
  ScopeRevoked: z.object(right),
  ScopeRestored: z.object(right),
}
export type TenantEvent = EventOf<typeof tenantEvents>
