import type { FactMap } from '../facts.ts'
import type { TenantEvent } from './events.ts'

/** How a tenant stands is between it and the operators. */
export const tenantFacts: FactMap<TenantEvent> = {
  TenantSuspended: 'internal',
  TenantReinstated: 'internal',
  ScopeRevoked: 'internal',
  ScopeRestored: 'internal',
}
