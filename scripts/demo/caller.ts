import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { DemoFailure } from './failure.ts'

/** One request. Everything that the demo sends may be sent again: it is a read, has a key, or names what it changes. */
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
  /** The service says that it has answered this very request before. */
  readonly replayed: boolean
}

/** Answers of any status but those that say "again, please", which are asked again. */
export type Call = (request: Request) => Promise<Answer>

export type CallerOptions = {
  readonly api: string
  readonly token: () => Promise<string>
  readonly signal: AbortSignal
}

/** Longer than a rate limit's minute, so that two runs after each other only take longer. */
const PATIENCE_MS = 75_000
const REQUEST_MAX_MS = 15_000
const PAUSE_MIN_MS = 200
const PAUSE_MAX_MS = 5_000

const problemSchema = z.object({ code: z.string(), detail: z.string().optional() })

/** The code of a problem document, and its words for people. */
export const problemIn = ({ body }: Answer): { code: string; detail: string } => {
  const parsed = problemSchema.safeParse(body)
  if (!parsed.success) return { code: 'no problem document', detail: '' }
  return { code: parsed.data.code, detail: parsed.data.detail ?? '' }
}

/** Throws a DemoFailure when the answer is not of the given status and shape. */
export const expectBody = <T>({ method, path }: Request, answer: Answer, schema: z.ZodType<T>): T => {
  const { code, detail } = problemIn(answer)
  if (answer.status >= 300)
    throw new DemoFailure(`${method} ${path} was answered ${answer.status} ${code}. ${detail}`.trim())
  const parsed = schema.safeParse(answer.body)
  if (parsed.success) return parsed.data
  throw new DemoFailure(`${method} ${path} was answered with a body that the contract does not have.`, parsed.error)
}

const AGAIN: ReadonlySet<number> = new Set([202, 429, 502, 503, 504])

const isToBeAsked = (answer: Answer): boolean =>
  AGAIN.has(answer.status) || (answer.status === 409 && problemIn(answer).code === 'idempotency_in_progress')

const readAnswer = async (response: Response): Promise<Answer> => ({
  status: response.status,
  body: await response.json().catch(() => undefined),
  etag: response.headers.get('etag') ?? '',
  location: response.headers.get('location') ?? undefined,
  replayed: response.headers.get('idempotent-replayed') === 'true',
})

type Attempt = { readonly answer: Answer; readonly retryAfterMs: number | undefined } | { readonly lost: Error }

const SECOND_MS = 1_000

const attempt = async ({ api, token, signal }: CallerOptions, request: Request): Promise<Attempt> => {
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
 * Speaks to the API as one caller. A lost answer, a busy or a healing service is asked again, with the same key, for as
 * long as a minute and a bit; then a DemoFailure says what it answered last.
 */
export const createCaller =
  (options: CallerOptions): Call =>
  async request => {
    const givenUpAtMs = performance.now() + PATIENCE_MS
    for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      const tried = await attempt(options, request)
      if ('answer' in tried && !isToBeAsked(tried.answer)) return tried.answer
      const waitMs = ('answer' in tried ? tried.retryAfterMs : undefined) ?? pauseMs
      if (performance.now() + waitMs >= givenUpAtMs)
        throw new DemoFailure(`${request.method} ${request.path} had ${explain(tried)}, for more than a minute.`)
      await sleep(waitMs, undefined, { signal: options.signal })
    }
  }
