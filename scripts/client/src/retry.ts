import { requestedPauseMs } from '../../../src/lib/requestedPause.ts'
import { EffectUnknownError, LedgerError, NoAnswerError } from './errors.ts'
import type { Problem } from './generated.ts'

/** Retries of requests by the guidance of their problems: bounded by attempts and a deadline, with backoff and jitter. */

export type RetryOptions = {
  readonly attemptsMax?: number
  /** For all attempts and the pauses between them. */
  readonly deadlineMs?: number
  /** For one attempt: the whole response if it is JSON, and its head if it is a file or a stream. */
  readonly attemptMs?: number
}

/** The access token, or a function that is asked for a current one before each attempt. */
export type Token = string | (() => string | Promise<string>)

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

type Strategy = Problem['retry']['strategy']

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

const isJson = (response: Response): boolean => /\bjson\b/.test(response.headers.get('content-type') ?? '')

const isProblem = (document: unknown): document is Problem => {
  const { code, retry } = Object(document) as Partial<Problem>
  return typeof code === 'string' && typeof retry?.strategy === 'string'
}

const errorOf = async (response: Response): Promise<LedgerError> => {
  const document: unknown = isJson(response) ? await response.json().catch(() => undefined) : undefined
  if (!isJson(response)) await response.body?.cancel()
  return new LedgerError(response, isProblem(document) ? document : undefined)
}

/** The guidance of the problem. An error of another server says nothing about the effect. */
const strategyOf = ({ problem, status }: LedgerError): Strategy =>
  problem?.retry.strategy ?? (status >= 500 ? 'query_state_or_same_key' : 'do_not_retry')

const isRetried = (strategy: Strategy, method: string, headers: Headers): boolean => {
  if (strategy === 'same_request') return true
  if (strategy === 'same_key') return headers.has('idempotency-key')
  return strategy === 'query_state_or_same_key' && isSafeToRepeat(method, headers)
}

/** The service refuses with these after it has looked for the effect of an earlier attempt. */
const DECIDED_STATUSES: ReadonlySet<number> = new Set([409, 422])

/** `decided`: the response tells what the request did, whichever attempt did it. `none`: this attempt did nothing. */
type Effect = 'decided' | 'none' | 'unknown'

const effectOf = ({ problem, status }: LedgerError, strategy: Strategy): Effect => {
  if (['same_request', 'same_key', 'reauthenticate'].includes(strategy)) return 'none'
  if (!['refresh_and_resubmit', 'do_not_retry'].includes(strategy)) return 'unknown'
  return problem !== undefined && DECIDED_STATUSES.has(status) ? 'decided' : 'none'
}

/** Between half of the grown pause and the whole, so that clients that failed together do not return together. */
const pauseMs = (attempt: number, error: unknown, random: () => number): number => {
  const grown = Math.min(PAUSE_FIRST_MS * 2 ** (attempt - 1), PAUSE_MAX_MS)
  const jittered = grown * (0.5 + random() / 2)
  const requested = error instanceof LedgerError ? requestedPauseMs(error.headers) : undefined
  return requested === undefined ? jittered : requested + jittered / 2
}

const startTimeout = (signal: AbortSignal | null | undefined, ms: number) => {
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(new DOMException('The attempt took too long.', 'TimeoutError')), ms)
  const signals = [...(signal ? [signal] : []), timeout.signal]
  return { signal: AbortSignal.any(signals), clear: () => clearTimeout(timer) }
}

/** The token; rejects when the signal aborts, whether or not the token comes. */
const readToken = (token: Token, signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => reject(reasonOf(signal))
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    Promise.resolve()
      .then(typeof token === 'string' ? () => token : token)
      .then(resolve, reject)
  })

/** `data`: the parsed JSON, the response itself if it is a file or a stream, or undefined without a body. */
export type Received = { readonly response: Response; readonly data: unknown }

type Failure = { readonly error: unknown; readonly isRetryable: boolean; readonly effect: Effect }

const receive = async (response: Response): Promise<Received> => {
  if (response.status >= 400) throw await errorOf(response)
  if (isJson(response)) return { response, data: await response.json() }
  return { response, data: response.headers.has('content-type') ? response : undefined }
}

const failureOf = (error: LedgerError, method: string, headers: Headers): Failure => {
  const strategy = strategyOf(error)
  return { error, isRetryable: isRetried(strategy, method, headers), effect: effectOf(error, strategy) }
}

type Send = (url: string, init: RequestInit, maxMs: number) => Promise<Received | Failure>

const createAttempt =
  (send: typeof fetch, token: Token): Send =>
  async (url, init, maxMs) => {
    const method = init.method ?? 'GET'
    const headers = new Headers(init.headers)
    const { signal, clear } = startTimeout(init.signal, maxMs)
    let isSent = false
    try {
      headers.set('authorization', `Bearer ${await readToken(token, signal)}`)
      isSent = true
      return await receive(await send(url, { ...init, headers, signal }))
    } catch (error) {
      if (!isSent) return { error, isRetryable: false, effect: 'none' }
      if (error instanceof LedgerError) return failureOf(error, method, headers)
      return { error: new NoAnswerError(url, error), isRetryable: isSafeToRepeat(method, headers), effect: 'unknown' }
    } finally {
      clear()
    }
  }

/**
 * Sends requests. A request is the same at each attempt, its Idempotency-Key included, but for the token; its body must
 * be a text. A JSON body that breaks off is a failed attempt. Rejects with the error of the last attempt, a LedgerError or
 * a NoAnswerError; with an EffectUnknownError when a write may have had an effect that no response tells; and with the
 * reason of the signal when the caller aborts.
 */
export const createSender = (
  options: RetryOptions & { readonly token: Token },
  surroundings: Partial<Surroundings> = {},
): ((url: string, init?: RequestInit) => Promise<Received>) => {
  const { fetch: send, nowMs, sleep: pause, random } = { ...usual, ...surroundings }
  const { attemptsMax = ATTEMPTS_MAX, deadlineMs = DEADLINE_MS, attemptMs = ATTEMPT_MS, token } = options
  const attemptOnce = createAttempt(send, token)

  return async (url, init = {}) => {
    const giveUpAtMs = nowMs() + deadlineMs
    const isWrite = !isRead(init.method ?? 'GET')
    let mayHaveEffect = false
    for (let attempt = 1; ; attempt++) {
      const ended = await attemptOnce(url, init, Math.min(attemptMs, giveUpAtMs - nowMs()))
      if ('response' in ended) return ended
      const { error, isRetryable, effect } = ended
      if (init.signal?.aborted === true) throw reasonOf(init.signal)
      mayHaveEffect ||= isWrite && effect === 'unknown'
      const waitMs = pauseMs(attempt, error, random)
      if (isRetryable && attempt < attemptsMax && nowMs() + waitMs < giveUpAtMs) {
        await pause(waitMs, init.signal ?? undefined)
        continue
      }
      if (mayHaveEffect && effect !== 'decided')
        throw new EffectUnknownError(error, new Headers(init.headers).get('idempotency-key') ?? undefined)
      throw error
    }
  }
}
