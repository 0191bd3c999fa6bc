import { RETRY_TABLE } from './contract.ts'

/**
 * Retries of requests by the retry table of the contract: bounded by attempts and a deadline, with backoff and jitter.
 */

export type RetryOptions = {
  readonly attemptsMax?: number
  /** For all attempts and the pauses between them. */
  readonly deadlineMs?: number
  /** For one attempt: the whole response if it is JSON, and its head if it is a file or a stream. */
  readonly attemptMs?: number
}

/** The surroundings, which tests replace. */
export type Surroundings = {
  readonly fetch: typeof fetch
  readonly nowMs: () => number
  /** Rejects when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>
  /** From 0 to 1. */
  readonly random: () => number
}

const ATTEMPTS_MAX = 6
const DEADLINE_MS = 60_000
const ATTEMPT_MS = 15_000
const PAUSE_FIRST_MS = 200
const PAUSE_MAX_MS = 10_000
const MS_PER_SECOND = 1_000

type Strategy = (typeof RETRY_TABLE)[keyof typeof RETRY_TABLE]['strategy']

const sleep: Surroundings['sleep'] = (ms, signal) =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(reasonOf(signal))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })

const reasonOf = (signal: AbortSignal | undefined): Error =>
  signal?.reason instanceof Error ? signal.reason : new Error('The request was aborted.')

const usual: Surroundings = {
  fetch: (input, init) => fetch(input, init),
  nowMs: () => performance.now(),
  sleep,
  random: () => Math.random(),
}

/** A request without effect, or one whose key lets it have its effect once. */
const isSafeToRepeat = (method: string, headers: Headers): boolean =>
  ['GET', 'HEAD', 'OPTIONS'].includes(method) || headers.has('idempotency-key')

const isStrategy = (text: unknown): text is Strategy =>
  Object.values(RETRY_TABLE).some(({ strategy }) => strategy === text)

/** The strategy of a failed response: of its code by the contract, or of the response itself if the code is newer. */
const strategyOf = async (response: Response): Promise<Strategy> => {
  const unknownEffect = response.status >= 500 ? 'query_state_or_same_key' : 'do_not_retry'
  if (!response.headers.get('content-type')?.includes('problem+json')) return unknownEffect
  const problem = (await response
    .clone()
    .json()
    .catch(() => ({}))) as { code?: string; retry?: { strategy?: unknown } }
  const known = Object.entries(RETRY_TABLE).find(([code]) => code === problem.code)?.[1].strategy
  if (known !== undefined) return known
  return isStrategy(problem.retry?.strategy) ? problem.retry.strategy : unknownEffect
}

const isRetried = (strategy: Strategy, method: string, headers: Headers): boolean => {
  if (strategy === 'same_request') return true
  if (strategy === 'same_key') return headers.has('idempotency-key')
  return strategy === 'query_state_or_same_key' && isSafeToRepeat(method, headers)
}

/** Retry-After in milliseconds; undefined without one, and for a date. */
const requestedPauseMs = (response: Response | undefined): number | undefined => {
  const seconds = response?.headers.get('retry-after')
  return seconds !== undefined && seconds !== null && /^\d+$/.test(seconds)
    ? Number(seconds) * MS_PER_SECOND
    : undefined
}

/** Between half of the grown pause and the whole, so that clients that failed together do not return together. */
const pauseMs = (attempt: number, response: Response | undefined, random: () => number): number => {
  const grown = Math.min(PAUSE_FIRST_MS * 2 ** (attempt - 1), PAUSE_MAX_MS)
  const jittered = grown * (0.5 + random() / 2)
  const requested = requestedPauseMs(response)
  return requested === undefined ? jittered : requested + jittered / 2
}

const startTimeout = (signal: AbortSignal | null | undefined, ms: number) => {
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(new DOMException('The attempt took too long.', 'TimeoutError')), ms)
  const signals = [...(signal ? [signal] : []), timeout.signal]
  return { signal: AbortSignal.any(signals), clear: () => clearTimeout(timer) }
}

const isJson = (response: Response): boolean => /\bjson\b/.test(response.headers.get('content-type') ?? '')

/**
 * `fetch` with retries. The request is the same at each attempt, its Idempotency-Key included; its body must be a text,
 * and its address a text or a URL. A JSON body that breaks off is a failed attempt. Resolves to the last response;
 * rejects as fetch does when no response came, and when the caller aborts.
 */
export const createRetryingFetch = (
  { attemptsMax = ATTEMPTS_MAX, deadlineMs = DEADLINE_MS, attemptMs = ATTEMPT_MS }: RetryOptions = {},
  { fetch: send, nowMs, sleep: pause, random }: Surroundings = usual,
): typeof fetch => {
  type Attempt = { readonly response?: Response; readonly error?: unknown; readonly isRetryable: boolean }

  const attemptOnce = async (input: string | URL, init: RequestInit, maxMs: number): Promise<Attempt> => {
    const method = (init.method ?? 'GET').toUpperCase()
    const headers = new Headers(init.headers)
    const { signal, clear } = startTimeout(init.signal, maxMs)
    try {
      const response = await send(input, { ...init, signal })
      if (response.status < 400) {
        if (isJson(response)) await response.clone().arrayBuffer()
        return { response, isRetryable: false }
      }
      return { response, isRetryable: isRetried(await strategyOf(response), method, headers) }
    } catch (error) {
      return { error, isRetryable: init.signal?.aborted !== true && isSafeToRepeat(method, headers) }
    } finally {
      clear()
    }
  }

  return async (input, init = {}) => {
    if (input instanceof Request) throw new TypeError('A Request can be sent only once: give its address and an init.')
    const giveUpAtMs = nowMs() + deadlineMs
    for (let attempt = 1; ; attempt++) {
      const maxMs = Math.min(attemptMs, giveUpAtMs - nowMs())
      const { response, error, isRetryable } = await attemptOnce(input, init, maxMs)
      const waitMs = pauseMs(attempt, response, random)
      const isLast = !isRetryable || attempt >= attemptsMax || nowMs() + waitMs >= giveUpAtMs
      if (isLast && response !== undefined) return response
      if (isLast) throw error
      await response?.body?.cancel()
      await pause(waitMs, init.signal ?? undefined)
    }
  }
}
