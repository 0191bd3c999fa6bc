import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { createRetryingFetch, EffectUnknownError } from '../client/src/retry.ts'
import { DemoFailure } from './demoFailure.ts'

/** The client of the API, with retries. */

/**
 * One request. Every request of the demo is safe to repeat: it is a read, has an idempotency key, or names the change.
 */
export type Request = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: object
  readonly idempotencyKey?: string
  readonly ifMatch?: string
}

export type Answer = {
  readonly status: number
  readonly body: unknown
  readonly etag: string
  readonly location: string | undefined
  /** The Idempotent-Replayed header of the response. */
  readonly replayed: boolean
}

/** Resolves to the final response; retryable statuses are retried before. */
export type Call = (request: Request) => Promise<Answer>

export type ApiClientOptions = {
  readonly api: string
  readonly token: () => Promise<string>
  readonly signal: AbortSignal
}

/** Longer than the minute of a rate limit, so that consecutive runs succeed, only later. */
const RETRY_MAX_MS = 75_000
const REQUEST_MAX_MS = 15_000
const ATTEMPTS_MAX = 100
const ACCEPTED = 202
const ACCEPTED_PAUSE_MS = 500
const EFFECT_UNKNOWN = 504

const problemSchema = z.object({ code: z.string(), detail: z.string().optional() })

/** The code and detail of a problem document. */
export const problemIn = ({ body }: Answer): { code: string; detail: string } => {
  const parsed = problemSchema.safeParse(body)
  if (!parsed.success) return { code: 'no problem document', detail: '' }
  return { code: parsed.data.code, detail: parsed.data.detail ?? '' }
}

/** Returns the body of a successful response. Throws a DemoFailure for any other status or shape. */
export const expectBody = <T>({ method, path }: Request, answer: Answer, schema: z.ZodType<T>): T => {
  const { code, detail } = problemIn(answer)
  if (answer.status >= 300)
    throw new DemoFailure(`${method} ${path} was answered ${answer.status} ${code}. ${detail}`.trim())
  const parsed = schema.safeParse(answer.body)
  if (parsed.success) return parsed.data
  throw new DemoFailure(`${method} ${path} was answered with a body that the contract does not have.`, parsed.error)
}

const readAnswer = async (response: Response): Promise<Answer> => ({
  status: response.status,
  body: await response.json().catch(() => undefined),
  etag: response.headers.get('etag') ?? '',
  location: response.headers.get('location') ?? undefined,
  replayed: response.headers.get('idempotent-replayed') === 'true',
})

const initOf = (signal: AbortSignal, request: Request): RequestInit => {
  const { method, body, idempotencyKey, ifMatch } = request
  const headers = {
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
  }
  return { method, headers, signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
}

/** The effect of a conditional request without a response is unknown, as after a 504: the caller reads the state. */
const withoutResult = ({ method, path, ifMatch }: Request, error: unknown): Answer | Promise<Answer> => {
  if (error instanceof EffectUnknownError && error.response !== undefined) return readAnswer(error.response)
  const reason = error instanceof Error ? error.message : String(error)
  if (ifMatch === undefined)
    throw new DemoFailure(`${method} ${path} had no answer (${reason}), for more than a minute.`)
  return {
    status: EFFECT_UNKNOWN,
    body: { code: 'no_answer', detail: reason },
    etag: '',
    location: undefined,
    replayed: false,
  }
}

/**
 * A client of the API with one identity, on the retrying fetch of the published client. A payment that is accepted and
 * not decided (202) is asked for again with its key, until RETRY_MAX_MS.
 */
export const createApiClient = ({ api, token, signal }: ApiClientOptions): Call => {
  const limits = { attemptsMax: ATTEMPTS_MAX, deadlineMs: RETRY_MAX_MS, attemptMs: REQUEST_MAX_MS }
  const send = createRetryingFetch({ ...limits, token })
  return async request => {
    const givenUpAtMs = performance.now() + RETRY_MAX_MS
    for (;;) {
      const init = initOf(signal, request)
      const answer = await send(`${api}${request.path}`, init).then(readAnswer, (error: unknown) => {
        signal.throwIfAborted()
        return withoutResult(request, error)
      })
      if (answer.status !== ACCEPTED || performance.now() >= givenUpAtMs) return answer
      await sleep(ACCEPTED_PAUSE_MS, undefined, { signal })
    }
  }
}
