import { WORKLOAD_LIFETIME_SECONDS } from '../../src/embedded/issuer/lifetimes.ts'

/** Half of the lifetime, so that a token outlives the request that carries it, including retries. */
const RENEW_AFTER_MS = (WORKLOAD_LIFETIME_SECONDS * 1_000) / 2

/** The current token, renewed by `mint` at half of its lifetime. Concurrent calls share one renewal. */
export const renewing = (mint: () => Promise<string>, now: () => number = Date.now): (() => Promise<string>) => {
  let current: Promise<string> | undefined
  let mintedAt = 0
  return () => {
    if (current === undefined || now() - mintedAt >= RENEW_AFTER_MS) {
      mintedAt = now()
      current = mint()
    }
    return current
  }
}
