import { SECOND_MS } from '../../lib/time.ts'
import { callerOf, type Principal } from '../../identity/principal.ts'
import { type CallerRate, type RateLimitSettings, type RatePolicy, tenantPolicy } from '../../settings/limits.ts'
import type { RateCounter, RateLimit } from '../../ports.ts'
import { Problem } from '../problems/problemCatalogue.ts'

/** Rate limits of callers and tenants, their headers and their problems. */

/** The usage of one limit, this request included. */
export type RateUsage = {
  readonly policy: string
  readonly limit: RateLimit
  readonly used: number
  readonly resetMs: number
}

export type RateLimits = {
  /**
   * Counts a request against the limits of all requests first, then against those of its class, and each time against
   * the caller's before the tenant's: a caller over its limit takes nothing from the other callers of its tenant.
   */
  readonly count: (principal: Principal, rateClass: CallerRate) => Promise<readonly RateUsage[]>
  /** Counts a failed authentication from this network. */
  readonly countFailure: (network: string) => Promise<RateUsage>
}

/** Cheap requests are counted per instance, expensive ones across all instances. */
export type Counters = { readonly local: RateCounter; readonly shared: RateCounter }

export const secondsUntilReset = ({ resetMs }: RateUsage): number => Math.max(1, Math.ceil(resetMs / SECOND_MS))

export const createRateLimits = (settings: RateLimitSettings, { local, shared }: Counters): RateLimits => {
  const usage = async (counter: RateCounter, key: string, policy: string, limit: RateLimit): Promise<RateUsage> => ({
    policy,
    limit,
    ...(await counter.count(`${policy}:${key}`, limit)),
  })
  const limitsOf = ({ tenant, subject, client, kind, quota }: Principal, rateClass: CallerRate): readonly Count[] => {
    const caller = callerOf({ tenant, subject, client })
    const count =
      (counter: RateCounter, key: string, policy: RatePolicy): Count =>
      () =>
        usage(counter, key, policy, settings[policy])
    const both = (counter: RateCounter, policy: CallerRate): readonly Count[] => [
      count(counter, caller, policy),
      count(counter, tenant, tenantPolicy(policy)),
    ]
    return [
      ...both(local, 'default'),
      ...(kind === 'api_key' ? [count(local, tenant, 'api_keys')] : []),
      ...(rateClass === 'default' ? [] : both(shared, rateClass)),
      ...(quota ? [() => usage(shared, caller, 'quota', quota)] : []),
    ]
  }
  return {
    count: async (principal, rateClass) => {
      const usages: RateUsage[] = []
      for (const count of limitsOf(principal, rateClass)) {
        const counted = await count()
        usages.push(counted)
        if (isExceeded(counted)) break
      }
      return usages
    },
    countFailure: network => usage(local, network, 'auth_failures', settings.auth_failures),
  }
}

type Count = () => Promise<RateUsage>

/** Policies that are quotas of API keys; the others are limits of every caller. */
const QUOTAS: ReadonlySet<string> = new Set(['quota', 'api_keys'])

export const isExceeded = ({ used, limit }: RateUsage): boolean => used > limit.requests

const leftOf = ({ used, limit }: RateUsage): number => Math.max(0, limit.requests - used)

const isOfTenant = ({ policy }: RateUsage): boolean => policy.startsWith(tenantPolicy(''))

/** The limit of a tenant is shown when it is nearer than the caller's own, which precedes it. */
const isShown = (usage: RateUsage, index: number, usages: readonly RateUsage[]): boolean => {
  const callers = usages[index - 1]
  return !isOfTenant(usage) || callers === undefined || leftOf(usage) < leftOf(callers)
}

/** The headers RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). */
export const rateHeaders = (all: readonly RateUsage[]): Record<string, string> => {
  const usages = all.filter(isShown)
  return {
    'RateLimit-Policy': usages
      .map(({ policy, limit }) => `"${policy}";q=${limit.requests};w=${limit.windowSeconds}`)
      .join(', '),
    RateLimit: usages.map(usage => `"${usage.policy}";r=${leftOf(usage)};t=${secondsUntilReset(usage)}`).join(', '),
  }
}

const counted = (usage: RateUsage): string => {
  if (usage.policy === 'api_keys') return 'All API keys of your tenant together'
  return isOfTenant(usage) ? 'All callers of your tenant together' : 'You'
}

/** The problem of the first limit that the request exceeds, with the time until its window ends. */
export const exceededBy = (usages: readonly RateUsage[]): Problem | undefined => {
  const exceeded = usages.find(isExceeded)
  if (!exceeded) return undefined
  const { policy, limit } = exceeded
  return new Problem(QUOTAS.has(policy) ? 'quota_exceeded' : 'rate_limited', {
    detail: `${counted(exceeded)} may make ${limit.requests} requests in ${limit.windowSeconds} s (the limit "${policy}").`,
    afterSeconds: secondsUntilReset(exceeded),
  })
}
