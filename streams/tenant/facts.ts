import type { FactMap } from '../facts.ts'
import type { TenantEvent } from './events.ts'

/** Internal events: a tenant's status concerns the tenant and the operators alone. */
export const tenantFacts: FactMap<TenantEvent> = {
  TenantSuspended: 'internal',
  TenantReinstated: 'internal',
  ScopeRevoked: 'internal',
  ScopeRestored: 'internal',
}
