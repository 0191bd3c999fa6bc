import type { RateLimit } from '../ports.ts'

/**
 * The limits of a caller and of its tenant, which are all its callers together: their names and their defaults. The
 * settings RATE_LIMITS, CONCURRENCY_LIMITS, TENANT_BYTES_PER_DAY, EXPORT_BYTES_PER_TENANT and
 * SUBSCRIPTION_TOPIC_BYTES change them.
 */

type OfTenant<Policy extends string> = `tenant_${Policy}`

export const tenantPolicy = <Policy extends string>(policy: Policy): OfTenant<Policy> => `tenant_${policy}`

const perMinute = (requests: number): RateLimit => ({ requests, windowSeconds: 60 })
const perHour = (requests: number): RateLimit => ({ requests, windowSeconds: 3_600 })

const CALLER_RATES = {
  default: perMinute(6_000),
  payments: perMinute(600),
  exports: perHour(10),
  replays: perHour(10),
}
/** The tenant limits that are not TENANT_FACTOR times those of a caller. */
const TENANT_RATES: Partial<Record<OfTenant<CallerRate>, RateLimit>> = { tenant_replays: perHour(10) }
const TENANT_FACTOR = 10
/** `auth_failures` counts an address, `api_keys` all API keys of a tenant. */
const OTHER_RATES = { auth_failures: perMinute(60), api_keys: perMinute(12_000) }

export type CallerRate = keyof typeof CALLER_RATES
export type RatePolicy = CallerRate | OfTenant<CallerRate> | keyof typeof OTHER_RATES
export type RateLimitSettings = Readonly<Record<RatePolicy, RateLimit>>

const CALLER_RATE_NAMES = Object.keys(CALLER_RATES) as CallerRate[]

const tenFold = ({ requests, windowSeconds }: RateLimit): RateLimit => ({
  requests: requests * TENANT_FACTOR,
  windowSeconds,
})

/** All limits, with the given ones instead of their defaults. The limit of a tenant follows that of its callers. */
export const rateLimitsWith = (overrides: Partial<RateLimitSettings>): RateLimitSettings => {
  const callers = { ...CALLER_RATES, ...OTHER_RATES, ...overrides }
  const tenants = CALLER_RATE_NAMES.map(name => [tenantPolicy(name), tenFold(callers[name])] as const)
  return { ...(Object.fromEntries(tenants) as RateLimitSettings), ...TENANT_RATES, ...callers }
}

export const DEFAULT_RATE_LIMITS = rateLimitsWith({})

/** How much of a kind may be in progress at once: event streams, requests that wait for a position, and so on. */
export const DEFAULT_CONCURRENCY_LIMITS = {
  streams: 20,
  tenant_streams: 200,
  waits: 20,
  tenant_waits: 200,
  downloads: 4,
  tenant_downloads: 8,
  manifests: 1,
  tenant_manifests: 2,
  exports: 2,
  tenant_exports: 8,
}

type ConcurrencyName = keyof typeof DEFAULT_CONCURRENCY_LIMITS
export type ConcurrencyPolicy = Exclude<ConcurrencyName, OfTenant<string>>
export type ConcurrencyLimitSettings = Readonly<Record<ConcurrencyName, number>>

const GIB = 2 ** 30

/** `tenantPerDay`: added to the log. `exportsOfTenant`: its files. `subscriptionTopic`: of each partition in Kafka. */
export const DEFAULT_BYTES = { tenantPerDay: 5 * GIB, exportsOfTenant: 10 * GIB, subscriptionTopic: GIB }
