import { RETRY_TABLE } from './contract.ts'
import { requestedPauseMs } from './requestedPause.ts'

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

/** The current access token. */
export type Token = () => string | Promise<string>

/**
 * A write may have had its effect, and no attempt was told: read the state, or send it again with the same
 * Idempotency-Key. The cause is the last response, or the error of an attempt without one.
 */
export class EffectUnknownError extends Error {
  readonly response: Response | undefined
  constructor(cause: unknown) {
    const response = cause instanceof Response ? cause : undefined
    const end = response === undefined ? `had no response (${String(cause)})` : `was answered ${response.status}`
    super(`The effect of the request is unknown. Its last attempt ${end}.`, { cause })
    this.name = 'EffectUnknownError'
    this.response = response
  }
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

const isRead = (method: string): boolean => ['GET', 'HEAD', 'OPTIONS'].includes(method)

/** A request without effect, or one whose key lets it have its effect once. */
const isSafeToRepeat = (method: string, headers: Headers): boolean => isRead(method) || headers.has('idempotency-key')

const isProblem = (response: Response): boolean =>
  response.headers.get('content-type')?.includes('problem+json') === true

const isStrategy = (text: unknown): text is Strategy =>
  Object.values(RETRY_TABLE).some(({ strategy }) => strategy === text)

/** The strategy of a failed response: of its code by the contract, or of the response itself if the code is newer. */
const strategyOf = async (response: Response): Promise<Strategy> => {
  const unknownEffect = response.status >= 500 ? 'query_state_or_same_key' : 'do_not_retry'
  if (!isProblem(response)) return unknownEffect
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

/** The service refuses with these after it has looked for the effect of an earlier attempt. */
const DECIDED_STATUSES: ReadonlySet<number> = new Set([409, 422])

/** `decided`: the response tells what the request did, whichever attempt did it. `none`: this attempt did nothing. */
type Effect = 'decided' | 'none' | 'unknown'

const effectOf = (response: Response, strategy: Strategy): Effect => {
  if (strategy === 'query_state_or_same_key') return 'unknown'
  const isRefused = strategy === 'refresh_and_resubmit' || strategy === 'do_not_retry'
  return isRefused && isProblem(response) && DECIDED_STATUSES.has(response.status) ? 'decided' : 'none'
}

/** Between half of the grown pause and the whole, so that clients that failed together do not return together. */
const pauseMs = (attempt: number, response: Response | undefined, random: () => number): number => {
  const grown = Math.min(PAUSE_FIRST_MS * 2 ** (attempt - 1), PAUSE_MAX_MS)
  const jittered = grown * (0.5 + random() / 2)
  const requested = response && requestedPauseMs(response.headers)
  return requested === undefined ? jittered : requested + jittered / 2
}

const startTimeout = (signal: AbortSignal | null | undefined, ms: number) => {
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(new DOMException('The attempt took too long.', 'TimeoutError')), ms)
  const signals = [...(signal ? [signal] : []), timeout.signal]
  return { signal: AbortSignal.any(signals), clear: () => clearTimeout(timer) }
}

const isJson = (response: Response): boolean => /\bjson\b/.test(response.headers.get('content-type') ?? '')

/** The token; rejects when the signal aborts, whether or not the token comes. */
const readToken = (token: Token, signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => reject(reasonOf(signal))
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    Promise.resolve().then(token).then(resolve, reject)
  })

type Attempt = {
  readonly response?: Response
  readonly error?: unknown
  readonly isRetryable: boolean
  readonly effect: Effect
}

const endWith = ({ response, error }: Attempt, isEffectUnknown: boolean): Response => {
  if (isEffectUnknown) throw new EffectUnknownError(response ?? error)
  if (response === undefined) throw error
  return response
}

type Send = (input: string | URL, init: RequestInit, maxMs: number) => Promise<Attempt>

const createAttempt =
  (send: typeof fetch, token: Token | undefined): Send =>
  async (input, init, maxMs) => {
    const method = (init.method ?? 'GET').toUpperCase()
    const headers = new Headers(init.headers)
    const { signal, clear } = startTimeout(init.signal, maxMs)
    let isSent = false
    try {
      if (token !== undefined) headers.set('authorization', `Bearer ${await readToken(token, signal)}`)
      isSent = true
      const response = await send(input, { ...init, headers, signal })
      if (response.status < 400) {
        if (isJson(response)) await response.clone().arrayBuffer()
        return { response, isRetryable: false, effect: 'decided' }
      }
      const strategy = await strategyOf(response)
      return { response, isRetryable: isRetried(strategy, method, headers), effect: effectOf(response, strategy) }
    } catch (error) {
      const isRetryable = isSent && init.signal?.aborted !== true && isSafeToRepeat(method, headers)
      return { error, isRetryable, effect: isSent ? 'unknown' : 'none' }
    } finally {
      clear()
    }
  }

/**
 * `fetch` with retries. The request is the same at each attempt, its Idempotency-Key included, but for the token, which
 * is asked for each time; its body must be a text, and its address a text or a URL. A JSON body that breaks off is a
 * failed attempt. Resolves to the last response. Rejects as fetch does when a read had no response, with an
 * EffectUnknownError when a write may have had an effect that no response tells, and when the caller aborts.
 */
export const createRetryingFetch = (
  options: RetryOptions & { readonly token?: Token | undefined } = {},
  { fetch: send, nowMs, sleep: pause, random }: Surroundings = usual,
): typeof fetch => {
  const { attemptsMax = ATTEMPTS_MAX, deadlineMs = DEADLINE_MS, attemptMs = ATTEMPT_MS, token } = options
  const attemptOnce = createAttempt(send, token)

  return async (input, init = {}) => {
    if (input instanceof Request) throw new TypeError('A Request can be sent only once: give its address and an init.')
    const giveUpAtMs = nowMs() + deadlineMs
    const isWrite = !isRead((init.method ?? 'GET').toUpperCase())
    let mayHaveEffect = false
    for (let attempt = 1; ; attempt++) {
      const ended = await attemptOnce(input, init, Math.min(attemptMs, giveUpAtMs - nowMs()))
      const { response, error, isRetryable, effect } = ended
      if (response === undefined && init.signal?.aborted === true) throw error
      mayHaveEffect ||= isWrite && effect === 'unknown'
      const waitMs = pauseMs(attempt, response, random)
      const isLast = !isRetryable || attempt >= attemptsMax || nowMs() + waitMs >= giveUpAtMs
      if (isLast) return endWith(ended, mayHaveEffect && effect !== 'decided')
      await response?.body?.cancel()
      await pause(waitMs, init.signal ?? undefined)
    }
  }
}
