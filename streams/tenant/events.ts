import { z } from 'zod'
import type { EventOf } from '../codec.ts'

const standing = {
  /** The operator's reason, for auditors. */
  reason: z.string(),
}
const right = { ...standing, subject: z.string(), scope: z.string() }

export const tenantEvents = {
  /** The tenant's callers are refused and its deliveries stop. */
  TenantSuspended: z.object(standing),
  TenantReinstated: z.object(standing),
  /** The scope is removed from the subject, whatever its credentials say. */
  ScopeRevoked: z.object(right),
  ScopeRestored: z.object(right),
}
export type TenantEvent = EventOf<typeof tenantEvents>
