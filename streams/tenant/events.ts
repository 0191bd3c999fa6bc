import { z } from 'zod'
import type { EventOf } from '../codec.ts'

const change = {
  /** The operator's reason, for auditors. */
  reason: z.string(),
}
const right = { ...change, subject: z.string(), scope: z.string() }

export const tenantEvents = {
  /** The tenant's callers are refused and its deliveries stop. */
  TenantSuspended: z.object(change),
  TenantReinstated: z.object(change),
  /** The scope is removed from the subject, whatever its credentials say. */
  ScopeRevoked: z.object(right),
  ScopeRestored: z.object(right),
}
export type TenantEvent = EventOf<typeof tenantEvents>
