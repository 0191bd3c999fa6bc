import { setTimeout as sleep } from 'node:timers/promises'

/** Retries requests after a 503 with Retry-After (RFC 9110, section 10.2.3). */

const MS_PER_SECOND = 1_000
const UNAVAILABLE = 503

/**
 * The pause that a 503 requests, in milliseconds; undefined for another response, and for a date instead of seconds.
 */
const pauseMsOf = ({ status, headers }: Response): number | undefined => {
  const seconds = headers.get('retry-after')
  return status === UNAVAILABLE && seconds !== null && /^\d+$/.test(seconds)
    ? Number(seconds) * MS_PER_SECOND
    : undefined
}

/**
 * Resolves to the first response that is no 503 with Retry-After, or to the last one when the requested pause would end
 * after `timeoutMs`. A 503 had no effect, so that any method may be retried; the body must be readable twice. Rejects
 * as fetch does, and when no response has come within `timeoutMs`.
 */
export const fetchWhenAvailable = async (url: string, init: RequestInit, timeoutMs: number): Promise<Response> => {
  const giveUpAtMs = performance.now() + timeoutMs
  const signal = AbortSignal.timeout(timeoutMs)
  for (;;) {
    const response = await fetch(url, { ...init, signal })
    const pauseMs = pauseMsOf(response)
    if (pauseMs === undefined || performance.now() + pauseMs >= giveUpAtMs) return response
    await response.body?.cancel()
    await sleep(pauseMs)
  }
}
