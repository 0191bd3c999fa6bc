import { DEFAULT_CONCURRENCY_LIMITS, DEFAULT_RATE_LIMITS } from '../../src/settings/limits.ts'
import type { ConcurrencyLimitSettings, RateLimitSettings } from '../../src/settings/limits.ts'
import type { RateLimit } from '../../src/ports.ts'

/** Limits of tests, the same for each policy. */

const all = <T>(names: object, value: T): Record<string, T> =>
  Object.fromEntries(Object.keys(names).map(name => [name, value]))

export const everyRate = (limit: RateLimit): RateLimitSettings => all(DEFAULT_RATE_LIMITS, limit) as RateLimitSettings

export const everyConcurrency = (max: number): ConcurrencyLimitSettings =>
  all(DEFAULT_CONCURRENCY_LIMITS, max) as ConcurrencyLimitSettings

const setting = (values: object, value: string): string =>
  Object.keys(values)
    .map(name => `${name}=${value}`)
    .join(',')

/** The settings of a service whose limits no test reaches. */
export const UNLIMITED_SETTINGS = {
  RATE_LIMITS: setting(DEFAULT_RATE_LIMITS, '100000000/60'),
  CONCURRENCY_LIMITS: setting(DEFAULT_CONCURRENCY_LIMITS, '1000'),
  TENANT_BYTES_PER_DAY: '1000TiB',
  EXPORT_BYTES_PER_TENANT: '1000TiB',
}
