import { setTimeout as sleep } from 'node:timers/promises'

/** Requests that are sent again where the server says "not now" (RFC 9110, section 10.2.3). */

const MS_PER_SECOND = 1_000
const UNAVAILABLE = 503

/** The pause that a 503 asks for, in milliseconds; undefined for any other answer, and for a date in place of seconds. */
const pauseMsOf = ({ status, headers }: Response): number | undefined => {
  const seconds = headers.get('retry-after')
  return status === UNAVAILABLE && seconds !== null && /^\d+$/.test(seconds)
    ? Number(seconds) * MS_PER_SECOND
    : undefined
}

/**
 * Resolves to the first answer that is no 503 with a Retry-After, or to the last one when the pause that it asks for would
 * end after `timeoutMs`. A 503 had no effect, so that any method may be sent again; the body must be one that can be read twice.
 * Rejects as fetch does, also when no answer has come after `timeoutMs`.
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
