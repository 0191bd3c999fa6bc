import type { Request as Incoming, Response as Outgoing } from 'express'
import type { TenantState } from '../../../streams/tenant/index.ts'
import { authorize } from '../../identity/authorize.ts'
import type { Principal, Scope } from '../../identity/principal.ts'
import { networkOf } from '../request/clientAddress.ts'
import { exceededBy, rateHeaders, type RateLimits } from '../admission/rateLimits.ts'
import { insufficientScope, Problem, scopesText, statusOf } from '../problems/problemCatalogue.ts'
import type { AnyRoute } from '../route.ts'
import type { AnyCall, Services } from '../services.ts'

/** Resolves to the caller, or throws Problem. `beforeWork` is awaited before an unknown credential is verified. */
export type Authenticate = (req: Incoming, beforeWork?: BeforeWork) => Promise<Principal>
export type BeforeWork = () => Promise<unknown>

type Guard = Pick<AnyCall, 'requireScopes' | 'recheck'>

export const createAccessControl = ({ rateLimits, tenantStatuses }: Services, authenticate: Authenticate) => {
  /** The caller with its effective scopes. Throws Problem (403): a suspended tenant, a missing scope. */
  const checkPermissions = async (principal: Principal, route: AnyRoute): Promise<Principal> => {
    const status = await tenantStatuses(principal.tenant)
    if (status.isSuspended)
      throw new Problem('policy_denied', {
        detail: 'The tenant is suspended; only the operator of the service can reinstate it.',
      })
    const effective = withoutRevoked(principal, status)
    checkScopes(effective, route)
    return effective
  }

  return {
    /** Authenticates the caller, and counts failures by network. */
    authenticateCounting: countingFailures(rateLimits, authenticate),
    /** Counts the request, forbidden ones too. Throws Problem (429) when the caller is over one of its rate limits. */
    countRequest: async (principal: Principal, route: AnyRoute, res: Outgoing): Promise<void> => {
      const counted = await rateLimits.count(principal, route.rateClass)
      res.locals['rateHeaders'] = rateHeaders(counted)
      res.locals['tenant'] = principal.tenant
      res.locals['client'] = principal.client
      const exceeded = exceededBy(counted)
      if (exceeded) throw exceeded
    },
    checkPermissions,
    /** The checks that a handler makes itself: of further scopes, and of a caller whose response is still being sent. */
    guardOf: (req: Incoming, route: AnyRoute, principal: Principal | undefined): Guard => {
      const required = new Set<Scope>()
      return {
        requireScopes: scopes => {
          requireAll(principal, scopes)
          for (const scope of scopes) required.add(scope)
        },
        // Without counting, and with the scopes that were revoked since.
        recheck: async () => requireAll(await checkPermissions(await authenticate(req), route), [...required]),
      }
    },
  }
}
export type AccessControl = ReturnType<typeof createAccessControl>

/**
 * Too many failed authentications from one network get 429. Valid credentials are always accepted, so a caller
 * cannot lock out others behind the same address. An expired token is not counted and always gets 401, since its holder
 * was authenticated once and refreshes it.
 */
const countingFailures =
  (rateLimits: RateLimits, authenticate: Authenticate): Authenticate =>
  async (req, beforeWork) => {
    try {
      return await authenticate(req, beforeWork)
    } catch (error) {
      if (!(error instanceof Problem) || statusOf(error.code) !== 401 || error.code === 'token_expired') throw error
      const failures = await rateLimits.countFailure(networkOf(String(req.res?.locals['address'])))
      throw exceededBy([failures]) ?? error
    }
  }

/** The caller without the scopes that an operator revoked, whatever its credential says. */
const withoutRevoked = (principal: Principal, { revoked }: TenantState): Principal => {
  const revokedScopes = revoked.get(principal.subject)
  if (revokedScopes === undefined || revokedScopes.size === 0) return principal
  return { ...principal, scopes: new Set([...principal.scopes].filter(scope => !revokedScopes.has(scope))) }
}

const requireAll = (principal: Principal | undefined, scopes: readonly Scope[]): void => {
  const lacking = scopes.filter(scope => !principal?.scopes.has(scope))
  if (lacking.length > 0) throw insufficientScope(lacking, `This also requires ${scopesText(lacking)}.`)
}

/** Checks the scopes and the kind of the credential. */
const checkScopes = (principal: Principal, { scope, orScopes = [], kinds }: AnyRoute): void => {
  if (scope === 'none') return
  if (orScopes.some(other => !('refused' in authorize(principal, { scope: other })))) return
  const decision = authorize(principal, { scope, ...(kinds ? { kinds } : {}) })
  if (!('refused' in decision)) return
  if (decision.check === 'scope') throw insufficientScope([scope], `This operation requires ${scopesText([scope])}.`)
  // Without declared kinds only API keys are refused, since they only read.
  const permitted = (kinds ?? ['user', 'workload']).join(' or ')
  const detail = `This operation requires a credential of the kind ${permitted}.`
  throw new Problem(decision.refused, { detail, scopes: [scope] })
}
