import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
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
const PAUSE_MIN_MS = 200
const PAUSE_MAX_MS = 5_000

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

const RETRIED_STATUSES: ReadonlySet<number> = new Set([202, 429, 502, 503, 504])

const isRetried = (answer: Answer): boolean =>
  RETRIED_STATUSES.has(answer.status) || (answer.status === 409 && problemIn(answer).code === 'idempotency_in_progress')

const readAnswer = async (response: Response): Promise<Answer> => ({
  status: response.status,
  body: await response.json().catch(() => undefined),
  etag: response.headers.get('etag') ?? '',
  location: response.headers.get('location') ?? undefined,
  replayed: response.headers.get('idempotent-replayed') === 'true',
})

type Attempt = { readonly answer: Answer; readonly retryAfterMs: number | undefined } | { readonly lost: Error }

const SECOND_MS = 1_000

const sendOnce = async ({ api, token, signal }: ApiClientOptions, request: Request): Promise<Attempt> => {
  const { method, path, body, idempotencyKey, ifMatch } = request
  const headers = {
    authorization: `Bearer ${await token()}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
  }
  try {
    const response = await fetch(`${api}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MAX_MS)]),
    })
    const seconds = response.headers.get('retry-after')
    const retryAfterMs = seconds === null ? undefined : Number(seconds) * SECOND_MS
    return { answer: await readAnswer(response), retryAfterMs }
  } catch (error) {
    signal.throwIfAborted()
    return { lost: error instanceof Error ? error : new Error(String(error)) }
  }
}

const explain = (tried: Attempt): string => {
  if ('lost' in tried) return `no answer (${tried.lost.message})`
  return `${tried.answer.status} ${problemIn(tried.answer).code}`
}

/**
 * A client of the API with one identity. Lost responses and retryable statuses are retried with the same key until
 * RETRY_MAX_MS; then a DemoFailure gives the last response.
 */
export const createApiClient =
  (options: ApiClientOptions): Call =>
  async request => {
    const givenUpAtMs = performance.now() + RETRY_MAX_MS
    for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      const tried = await sendOnce(options, request)
      if ('answer' in tried && !isRetried(tried.answer)) return tried.answer
      const waitMs = ('answer' in tried ? tried.retryAfterMs : undefined) ?? pauseMs
      if (performance.now() + waitMs >= givenUpAtMs)
        throw new DemoFailure(`${request.method} ${request.path} had ${explain(tried)}, for more than a minute.`)
      await sleep(waitMs, undefined, { signal: options.signal })
    }
  }
