import type { Principal } from '../../identity/principal.ts'
import type { RateCounter, RateLimit, RatePolicy } from '../../ports.ts'
import { Problem } from '../response/problemCatalogue.ts'

/** How a caller stands with one of its limits after this request. */
export type RateUsage = {
  readonly policy: string
  readonly limit: RateLimit
  readonly used: number
  readonly resetMs: number
}

export type RateClass = Exclude<RatePolicy, 'auth_failures' | 'api_keys'>

export type Limits = {
  /** Counts a request of the caller: with the limit of all requests first, then with those that are its own. */
  readonly count: (principal: Principal, rateClass: RateClass) => Promise<readonly RateUsage[]>
  /** Counts a failed authentication from this address. */
  readonly countFailure: (address: string) => Promise<RateUsage>
}

export type LimitSettings = Readonly<Record<RatePolicy, RateLimit>>
/** What is cheap is counted where it happens, what is expensive for all instances together. */
export type Counters = { readonly local: RateCounter; readonly shared: RateCounter }

/** One name for one caller: whatever is shared out among callers is shared out by it. */
export const callerOf = ({ tenant, subject, client }: Pick<Principal, 'tenant' | 'subject' | 'client'>): string =>
  JSON.stringify([tenant, subject, client])

const MS_PER_SECOND = 1_000
export const secondsUntilReset = ({ resetMs }: RateUsage): number => Math.max(1, Math.ceil(resetMs / MS_PER_SECOND))

export const createLimits = (settings: LimitSettings, { local, shared }: Counters): Limits => {
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
      // Each key is a caller of its own, so that a tenant with many keys would have as many limits.
      const keys = kind === 'api_key' ? [await usage(local, tenant, 'api_keys', settings.api_keys)] : []
      const quotas = quota ? [await usage(shared, key, 'quota', quota)] : []
      return [all, ...own, ...keys, ...quotas]
    },
    countFailure: address => usage(local, address, 'auth_failures', settings.auth_failures),
  }
}

/** Shares of what a tenant gives its API keys; the other policies are limits of every caller. */
const QUOTAS: ReadonlySet<string> = new Set(['quota', 'api_keys'])

export const isExceeded = ({ used, limit }: RateUsage): boolean => used > limit.requests

/** RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). */
export const rateHeaders = (usages: readonly RateUsage[]): Record<string, string> => ({
  'RateLimit-Policy': usages
    .map(({ policy, limit }) => `"${policy}";q=${limit.requests};w=${limit.windowSeconds}`)
    .join(', '),
  RateLimit: usages
    .map(one => `"${one.policy}";r=${Math.max(0, one.limit.requests - one.used)};t=${secondsUntilReset(one)}`)
    .join(', '),
})

/** The problem of the first limit that the request has gone beyond, with the time after which there is room again. */
export const exceededBy = (usages: readonly RateUsage[]): Problem | undefined => {
  const exceeded = usages.find(isExceeded)
  if (!exceeded) return undefined
  const { policy, limit } = exceeded
  return new Problem(QUOTAS.has(policy) ? 'quota_exceeded' : 'rate_limited', {
    detail: `The limit "${policy}" allows ${limit.requests} requests in ${limit.windowSeconds} s.`,
    afterSeconds: secondsUntilReset(exceeded),
  })
}
