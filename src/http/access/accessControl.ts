import type { Request as Incoming, Response as Outgoing } from 'express'
import type { TenantState } from '../../../streams/tenant/index.ts'
import { authorize } from '../../identity/authorize.ts'
import type { Principal } from '../../identity/principal.ts'
import { networkOf } from '../server/clientAddress.ts'
import { exceededBy } from './rateLimits.ts'
import { Problem, statusOf } from '../response/problemCatalogue.ts'
import type { AnyRoute, Services } from '../route.ts'

/** Says who is calling, or throws the Problem that says why not. */
export type Authenticate = (req: Incoming) => Promise<Principal>

/** Identifies the caller, and decides what it may do here and how often. */
export type AccessControl = {
  readonly identify: Authenticate
  /** The caller with what it may do here. Throws Problem: 429 before 403, and what is forbidden is counted too. */
  readonly admit: (principal: Principal, declared: AnyRoute, res: Outgoing) => Promise<Principal>
  /** Once more, for what goes on after the first answer; nothing is counted. */
  readonly recheck: (req: Incoming, declared: AnyRoute) => Promise<void>
}

export const createAccessControl = (
  { limits, tenantStatuses }: Services,
  authenticate: Authenticate,
): AccessControl => {
  // Valid credentials are always accepted, so that a caller cannot lock out others behind the same address; an address
  // from which too many are refused is no longer told why. A token that has only expired is always told so, and not
  // counted: its holder is known, and refreshes it when it hears of it.
  const identify: Authenticate = async req => {
    try {
      return await authenticate(req)
    } catch (error) {
      if (!(error instanceof Problem) || statusOf(error.code) !== 401 || error.code === 'token_expired') throw error
      const failures = await limits.countFailure(networkOf(String(req.res?.locals['address'])))
      throw exceededBy([failures]) ?? error
    }
  }

  const permit = async (principal: Principal, declared: AnyRoute): Promise<Principal> => {
    const status = await tenantStatuses(principal.tenant)
    if (status.isSuspended) throw new Problem('policy_denied', { detail: 'The tenant is suspended.' })
    const effective = withoutRevoked(principal, status)
    checkPermission(effective, declared)
    return effective
  }

  return {
    identify,
    admit: async (principal, declared, res) => {
      const counted = await limits.count(principal, declared.rateClass)
      res.locals['rateUsage'] = counted
      res.locals['tenant'] = principal.tenant
      // First, since a refusal for want of a right is an audit record: beyond its limits a caller causes no more work.
      const exceeded = exceededBy(counted)
      if (exceeded) throw exceeded
      return permit(principal, declared)
    },
    recheck: async (req, declared) => {
      await permit(await authenticate(req), declared)
    },
  }
}

/** What an operator has taken away is not there, whatever the credential says. */
const withoutRevoked = (principal: Principal, { revoked }: TenantState): Principal => {
  const taken = revoked.get(principal.subject)
  if (taken === undefined || taken.size === 0) return principal
  return { ...principal, scopes: new Set([...principal.scopes].filter(scope => !taken.has(scope))) }
}

const checkPermission = (principal: Principal, { scope, orScopes = [], kinds }: AnyRoute): void => {
  if (scope === 'none') return
  if (orScopes.some(other => !('refused' in authorize(principal, { scope: other })))) return
  const decision = authorize(principal, { scope, ...(kinds ? { kinds } : {}) })
  if (!('refused' in decision)) return
  const needs = decision.check === 'credential' ? (kinds ?? ['user', 'workload']).join(' or ') : `the scope ${scope}`
  throw new Problem(decision.refused, { detail: `This operation needs ${needs}.`, scopes: [scope] })
}
