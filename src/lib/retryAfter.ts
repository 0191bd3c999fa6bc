import { setTimeout as sleep } from 'node:timers/promises'
import { requestedPauseMs } from './requestedPause.ts'

/** Retries requests after a 503 with Retry-After (RFC 9110, section 10.2.3). */

const UNAVAILABLE = 503
/** A server may request no pause at all. */
const PAUSE_MIN_MS = 100

/**
 * Resolves to the first response that is no 503 with Retry-After, or to the last one when the requested pause would end
 * after `timeoutMs`. A 503 had no effect, so any method may be retried; the body must be readable twice. Rejects
 * as fetch does, and when no response has come within `timeoutMs`.
 */
export const fetchWhenAvailable = async (url: string, init: RequestInit, timeoutMs: number): Promise<Response> => {
  const giveUpAtMs = performance.now() + timeoutMs
  const signal = AbortSignal.timeout(timeoutMs)
  for (;;) {
    const response = await fetch(url, { ...init, signal })
    const requestedMs = response.status === UNAVAILABLE ? requestedPauseMs(response.headers) : undefined
    if (requestedMs === undefined) return response
    const pauseMs = Math.max(requestedMs, PAUSE_MIN_MS)
    if (performance.now() + pauseMs >= giveUpAtMs) return response
    await response.body?.cancel()
    await sleep(pauseMs)
  }
}
