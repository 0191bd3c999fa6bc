import { WORKLOAD_LIFETIME_SECONDS } from '../../src/embedded/issuer/lifetimes.ts'

/** Renewed well before it ends: a token must outlive the request that carries it, retries included. */
const RENEW_AFTER_MS = (WORKLOAD_LIFETIME_SECONDS * 1_000) / 2

/** The current token; a new one from `mint` when it is half through its life. One at a time, however many ask. */
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
