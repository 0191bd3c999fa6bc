import type { Ledger } from '../commandHandler.ts'
import { createTenantStatuses, type TenantStatuses } from '../tenantStatus.ts'

/** Whether a subscription may still deliver, by the status of its tenant and the revoked scopes of its principal. */

export type Allowance =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly reason: 'tenant_suspended' | 'scope_revoked' }

/** The tenant whose facts are delivered, the principal that asked, and its scopes. */
export type Subscribed = {
  readonly tenant_id: string
  readonly created_by: string
  readonly scopes: readonly string[]
}

/** Whether the subscription may still deliver. Throws Unavailable when nothing is known of its tenant. */
export type IsStillAllowed = (subscribed: Subscribed) => Promise<Allowance>

export const allowanceBy =
  (tenantStatuses: TenantStatuses): IsStillAllowed =>
  async ({ tenant_id, created_by, scopes }) => {
    const { isSuspended, revoked } = await tenantStatuses(tenant_id)
    if (isSuspended) return { allowed: false, reason: 'tenant_suspended' }
    const revocations = revoked.get(created_by)
    const lacks = revocations !== undefined && scopes.some(scope => revocations.has(scope))
    return lacks ? { allowed: false, reason: 'scope_revoked' } : { allowed: true }
  }

/**
 * For frequent checks: a cached yes may be seconds old, a no is verified, as the tenant may just have been reinstated.
 */
export const watchedAllowance = (ledger: Ledger): IsStillAllowed => {
  const usual = allowanceBy(createTenantStatuses(ledger))
  return async subscribed => {
    const allowance = await usual(subscribed)
    return allowance.allowed ? allowance : allowanceBy(createTenantStatuses(ledger))(subscribed)
  }
}
