import type { Principal } from '../../identity/principal.ts'
import type { RateCounter, RateLimit, RatePolicy } from '../../ports.ts'
import { Problem } from '../response/problemCatalogue.ts'

/** Rate limits of callers, their headers and their problems. */

/** The usage of one limit by a caller, this request included. */
export type RateUsage = {
  readonly policy: string
  readonly limit: RateLimit
  readonly used: number
  readonly resetMs: number
}

export type RateClass = Exclude<RatePolicy, 'auth_failures' | 'api_keys'>

export type RateLimits = {
  /** Counts a request of the caller against the limit of all requests first, then against the limits of its class. */
  readonly count: (principal: Principal, rateClass: RateClass) => Promise<readonly RateUsage[]>
  /** Counts a failed authentication from this network. */
  readonly countFailure: (network: string) => Promise<RateUsage>
}

export type RateLimitSettings = Readonly<Record<RatePolicy, RateLimit>>
/** Cheap requests are counted per instance, expensive ones across all instances. */
export type Counters = { readonly local: RateCounter; readonly shared: RateCounter }

/** The identity by which limits and capacity are divided among callers. */
export const callerOf = ({ tenant, subject, client }: Pick<Principal, 'tenant' | 'subject' | 'client'>): string =>
  JSON.stringify([tenant, subject, client])

const MS_PER_SECOND = 1_000
export const secondsUntilReset = ({ resetMs }: RateUsage): number => Math.max(1, Math.ceil(resetMs / MS_PER_SECOND))

export const createRateLimits = (settings: RateLimitSettings, { local, shared }: Counters): RateLimits => {
  const usage = async (counter: RateCounter, key: string, policy: string, limit: RateLimit): Promise<RateUsage> => ({
    policy,
    limit,
    ...(await counter.count(`${policy}:${key}`, limit)),
  })
  return {
    count: async ({ tenant, subject, client, kind, quota }, rateClass) => {
      const key = callerOf({ tenant, subject, client })
      const all = await usage(local, key, 'default', settings.default)
      if (isExceeded(all)) return [all]
      const own = rateClass === 'default' ? [] : [await usage(shared, key, rateClass, settings[rateClass])]
      // Counted per tenant: each key is a caller of its own, so many keys would multiply the other limits.
      const keys = kind === 'api_key' ? [await usage(local, tenant, 'api_keys', settings.api_keys)] : []
      const quotas = quota ? [await usage(shared, key, 'quota', quota)] : []
      return [all, ...own, ...keys, ...quotas]
    },
    countFailure: network => usage(local, network, 'auth_failures', settings.auth_failures),
  }
}

/** Policies that are quotas of API keys; the others are limits of every caller. */
const QUOTAS: ReadonlySet<string> = new Set(['quota', 'api_keys'])

export const isExceeded = ({ used, limit }: RateUsage): boolean => used > limit.requests

/** The headers RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). */
export const rateHeaders = (usages: readonly RateUsage[]): Record<string, string> => ({
  'RateLimit-Policy': usages
    .map(({ policy, limit }) => `"${policy}";q=${limit.requests};w=${limit.windowSeconds}`)
    .join(', '),
  RateLimit: usages
    .map(usage => `"${usage.policy}";r=${Math.max(0, usage.limit.requests - usage.used)};t=${secondsUntilReset(usage)}`)
    .join(', '),
})

/** The problem of the first limit that the request exceeds, with the time until its window ends. */
export const exceededBy = (usages: readonly RateUsage[]): Problem | undefined => {
  const exceeded = usages.find(isExceeded)
  if (!exceeded) return undefined
  const { policy, limit } = exceeded
  return new Problem(QUOTAS.has(policy) ? 'quota_exceeded' : 'rate_limited', {
    detail: `The limit "${policy}" allows ${limit.requests} requests in ${limit.windowSeconds} s.`,
    afterSeconds: secondsUntilReset(exceeded),
  })
}
