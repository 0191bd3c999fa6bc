import { setTimeout as sleep } from 'node:timers/promises'
import { requestedPauseMs } from './requestedPause.ts'

const UNAVAILABLE = 503
/** A server may request no pause at all. */
const PAUSE_MIN_MS = 100

/**
 * The first response that is no 503 with Retry-After, or the last one within `timeoutMs`. A 503 had no effect, so any
 * method is retried; the body must be readable twice. Rejects as fetch does.
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
