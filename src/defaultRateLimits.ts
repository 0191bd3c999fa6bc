import type { RateLimit, RatePolicy } from './ports.ts'

/** Requests that a caller may make within the seconds of a window. RATE_LIMITS changes them. */
export const DEFAULT_RATE_LIMITS: Readonly<Record<RatePolicy, RateLimit>> = {
  default: { requests: 6_000, windowSeconds: 60 },
  payments: { requests: 600, windowSeconds: 60 },
  exports: { requests: 10, windowSeconds: 3_600 },
  auth_failures: { requests: 60, windowSeconds: 60 },
  api_keys: { requests: 12_000, windowSeconds: 60 },
}
