import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { requestedPauseMs } from '../../../src/lib/requestedPause.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { type Digest, type Fact, factSchema, type Range } from './fact.ts'

/** The two endpoints that a subscriber needs, with retries of retryable statuses. */

const pageSchema = z.object({
  items: z.array(factSchema),
  page: z.object({ next_cursor: z.string(), has_more: z.boolean(), as_of_position: z.string() }),
})
export type Page = z.output<typeof pageSchema>

const manifestSchema = z.object({
  items: z.tuple([z.object({ to_position: z.string(), count: z.int(), sha256: z.string() })]),
})
const problemSchema = z.object({ code: z.string(), detail: z.string().optional() })

/** The start of a page: after a cursor, or at a position. */
export type Start = { readonly cursor: string } | { readonly from_position: string }

export type Api = {
  readonly page: (start: Start) => Promise<Page>
  readonly manifest: (topic: string, range: Range) => Promise<Digest>
  /** The digests of adjacent ranges, as long as the service counts them at once, which together are the whole range. */
  readonly manifests: (topic: string, range: Range) => AsyncIterable<Range & Digest>
  /**
   * The facts of the tenant in the range, in the order of their arrival. A fact that was delivered late has a place
   * after the range.
   */
  readonly facts: (range: Range) => AsyncIterable<Fact>
}

export type ApiOptions = {
  readonly api: string
  readonly token: () => Promise<string>
  readonly signal: AbortSignal
  /** The time limit for retries; infinite for a consumer that follows. */
  readonly retryMaxMs: number
}

/** Reading continues from the position instead, after which facts that were delivered late meanwhile do not come. */
export class CursorExpired extends Error {
  constructor() {
    super('The cursor is too old.')
    this.name = 'CursorExpired'
  }
}

/** Cursors are sealed for one tenant, with the secret of one log. */
const FOREIGN_CURSOR =
  'The ledger did not issue the cursor of this copy for this tenant: the copy is of another tenant or of another log. ' +
  'Correct --tenant or --api, or name another folder.'

const PAGE = 100
const REQUEST_MAX_MS = 60_000
const PAUSE_MIN_MS = 200
const PAUSE_MAX_MS = 5_000
const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504])

type Attempt = { readonly answer: unknown } | { readonly why: string; readonly requestedMs?: number | undefined }

const sendOnce = async ({ api, token, signal }: ApiOptions, path: string): Promise<Attempt> => {
  const authorization = `Bearer ${await token()}`
  const within = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MAX_MS)])
  let response: Response
  let body: unknown
  try {
    response = await fetch(`${api}${path}`, { headers: { authorization }, signal: within })
    body = await response.json()
  } catch (error) {
    signal.throwIfAborted()
    return { why: `no answer (${error instanceof Error ? error.message : String(error)})` }
  }
  if (response.ok) return { answer: body }
  const problem = problemSchema.safeParse(body)
  const { code, detail = '' } = problem.success ? problem.data : { code: 'no problem document' }
  if (code === 'cursor_expired') throw new CursorExpired()
  if (code === 'cursor_invalid') throw new StartupError(FOREIGN_CURSOR)
  const why = `${response.status} ${code}. ${detail}`.trim()
  if (!RETRIED_STATUSES.has(response.status)) throw new StartupError(`GET ${path} was answered ${why}`)
  return { why, requestedMs: requestedPauseMs(response.headers) }
}

const createGet =
  (options: ApiOptions) =>
  async <T>(path: string, schema: z.ZodType<T>): Promise<T> => {
    const givenUpAtMs = performance.now() + options.retryMaxMs
    for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      const tried = await sendOnce(options, path)
      if ('answer' in tried) {
        const parsed = schema.safeParse(tried.answer)
        if (parsed.success) return parsed.data
        throw new StartupError(`GET ${path} was answered with a body that the contract does not have.`, parsed.error)
      }
      // A pause of 0, or a date that has passed, must not repeat the request at once, again and again.
      const waitMs = Math.max(tried.requestedMs ?? 0, pauseMs)
      if (performance.now() + waitMs >= givenUpAtMs)
        throw new StartupError(`GET ${options.api}${path} had ${tried.why}`)
      await sleep(waitMs, undefined, { signal: options.signal })
    }
  }

export const createApi = (options: ApiOptions): Api => {
  const get = createGet(options)
  const page: Api['page'] = start =>
    get(`/events?${new URLSearchParams({ limit: String(PAGE), ...start }).toString()}`, pageSchema)
  const digestOf = async (query: Readonly<Record<string, string>>) =>
    (await get(`/events/manifest?${new URLSearchParams(query).toString()}`, manifestSchema)).items[0]
  return {
    page,
    manifest: (topic, { from, to }) => digestOf({ topic, from: from.toString(), to: to.toString() }),
    manifests: async function* (topic, { from: first, to }) {
      for (let from = first; from <= to; ) {
        // Without an end the range is the longest that the service counts. If that is enough, the end is named.
        const start = { topic, from: from.toString() }
        const longest = await digestOf(start)
        const isEnough = BigInt(longest.to_position) > to
        const { count, sha256, to_position } = isEnough ? await digestOf({ ...start, to: to.toString() }) : longest
        yield { from, to: BigInt(to_position), count, sha256 }
        from = BigInt(to_position) + 1n
      }
    },
    facts: async function* ({ from, to }) {
      for (let start: Start = { from_position: from.toString() }; ; ) {
        const { items, page: end } = await page(start)
        for (const fact of items) {
          if (BigInt(fact.position) >= from && BigInt(fact.position) <= to) yield fact
        }
        if (!end.has_more) return
        start = { cursor: end.next_cursor }
      }
    },
  }
}
