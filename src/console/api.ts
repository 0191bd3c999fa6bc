import type { ApiVersion, Operations, Problem } from '../../scripts/client/src/generated.ts'
import { accessToken, expire } from './session.ts'

/** Requests to the API. Each has the caller's token and no other right; failures are problem documents. */

export const API_VERSION: ApiVersion = '2026-11-22'

export type OperationName = keyof Operations
type Answers<O extends OperationName> = Operations[O]['answers']
type DataOf<O extends OperationName> = {
  [S in keyof Answers<O>]: Answers<O>[S] extends { readonly data: infer D } ? D : never
}[keyof Answers<O>]

export type Input = {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export type Answer<T> = {
  readonly status: number
  readonly headers: Headers
  readonly etag: string
  /** The body as it came. */
  readonly text: string
  readonly data: T
}

/** What a problem says to do, by its retry strategy. */
const REMEDIES: Readonly<Record<string, string>> = {
  do_not_retry: 'Correct the request; sent again unchanged it would fail again.',
  reauthenticate: 'Sign in again, then repeat what you did.',
  refresh_and_resubmit: 'Reload to see the current state, then decide whether you still want it.',
  same_request: 'Try again in a moment.',
  same_key: 'Try again in a moment with the same idempotency key.',
  query_state_or_same_key: 'The effect is unknown: reload, or send it again with the same idempotency key.',
}

/** A failed request: a problem of the API, or no answer at all. */
export class ApiError extends Error {
  readonly code: string
  readonly status: number
  readonly detail: string
  readonly remedy: string
  readonly correlationId: string
  readonly violations: readonly string[]

  /** Some failures are those of the console itself, with codes of its own. */
  constructor(problem: Partial<Omit<Problem, 'code'>> & { readonly code?: string }) {
    const { title = 'The request failed', detail = '', code = 'unknown', status = 0, correlation_id = '' } = problem
    super(title)
    this.code = code
    this.status = status
    this.detail = detail
    this.correlationId = correlation_id
    this.remedy = REMEDIES[problem.retry?.strategy ?? ''] ?? 'Try again.'
    this.violations = (problem.errors ?? []).map(({ pointer, detail: words }) => `${pointer}: ${words}`)
  }
}

const noAnswer = (): ApiError =>
  new ApiError({
    title: 'No answer',
    code: 'no_answer',
    detail: 'The service cannot be reached. Check the connection.',
    retry: { retryable: true, strategy: 'same_request' },
  })

const expired = (): ApiError =>
  new ApiError({
    title: 'Your session has expired',
    code: 'token_expired',
    detail: 'The page stays as it is.',
    retry: { retryable: false, strategy: 'reauthenticate' },
  })

/** The path and query of an operation such as `GET /orders/{id}`. */
export const addressOf = (operation: string, { path = {}, query = {} }: Input): string => {
  const template = operation.slice(operation.indexOf(' ') + 1)
  const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''))
  const entries = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(entries.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return search === '' ? filled : `${filled}?${search}`
}

const methodOf = (operation: string): string => operation.slice(0, operation.indexOf(' '))

export const headersOf = (operation: string, { body, headers }: Input): Record<string, string> => ({
  'API-Version': API_VERSION,
  ...(body === undefined
    ? {}
    : { 'Content-Type': methodOf(operation) === 'PATCH' ? 'application/merge-patch+json' : 'application/json' }),
  ...headers,
})

const fetchOnce = (operation: string, input: Input, token: string): Promise<Response> =>
  fetch(addressOf(operation, input), {
    method: methodOf(operation),
    headers: { ...headersOf(operation, input), Authorization: `Bearer ${token}` },
    body: input.body === undefined ? null : JSON.stringify(input.body),
    ...(input.signal === undefined ? {} : { signal: input.signal }),
  })

const problemIn = async (response: Response): Promise<ApiError> =>
  new ApiError(
    await response.json().catch(() => ({
      title: `The request failed with ${response.status}`,
      status: response.status,
      correlation_id: response.headers.get('x-correlation-id') ?? '',
    })),
  )

/** Resolves to the response if it is successful. Throws ApiError. An expired token is renewed once. */
export const send = async (operation: string, input: Input): Promise<Response> => {
  for (const again of [false, true]) {
    const token = await accessToken(again)
    if (token === undefined) throw expired()
    const response = await fetchOnce(operation, input, token).catch((error: unknown) => {
      throw input.signal?.aborted ? error : noAnswer()
    })
    if (response.ok) return response
    if (response.status !== 401) throw await problemIn(response)
  }
  expire()
  throw expired()
}

/** The position of the last command from this page, which lists must include to show what it did. */
let written = 0n

const notePosition = (headers: Headers): void => {
  const position = BigInt(headers.get('ledger-position') ?? 0)
  if (position > written) written = position
}

const LIST_WAIT_SECONDS = 5

/** Headers of a list that is to include what was done from this page: it waits for its read model. */
export const afterOwnWrites = (): Readonly<Record<string, string>> =>
  written === 0n ? {} : { 'If-Min-Position': written.toString(), Prefer: `wait=${LIST_WAIT_SECONDS}` }

/** An operation whose name is known only when it is asked for, as that of a form. */
export const requestAny = async <T>(operation: string, input: Input): Promise<Answer<T>> => {
  const { status, headers, ...response } = await send(operation, input).then(async answer => ({
    status: answer.status,
    headers: answer.headers,
    text: await answer.text(),
  }))
  notePosition(headers)
  const isJson = (headers.get('content-type') ?? '').includes('json') && response.text !== ''
  const data = (isJson ? JSON.parse(response.text) : undefined) as T
  return { status, headers, etag: headers.get('etag') ?? '', text: response.text, data }
}

export const request = <O extends OperationName>(operation: O, input: Input): Promise<Answer<DataOf<O>>> =>
  requestAny(operation, input)

/** The body of a successful answer. Throws ApiError. */
export const read = async <O extends OperationName>(operation: O, input: Input = {}): Promise<DataOf<O>> =>
  (await request(operation, input)).data

const unless =
  (isExpected: (error: ApiError) => boolean) =>
  <T>(work: () => Promise<T>): Promise<T | undefined> =>
    work().catch((error: unknown) => {
      if (error instanceof ApiError && isExpected(error)) return undefined
      throw error
    })

/** Undefined where the policy of the installation denies it, as to a tenant that does not operate it. */
export const unlessDenied = unless(({ code }) => code === 'policy_denied')

/** Undefined for what the caller may not see, or that was deleted. */
export const unlessMissing = unless(({ status }) => status === 403 || status === 404)

export type Page<T> = {
  readonly items: readonly T[]
  readonly page: { readonly next_cursor: string | null; readonly has_more: boolean; readonly as_of_position: string }
}
type ItemOf<O extends OperationName> = DataOf<O> extends Page<infer T> ? T : never

const PAGE_MAX = 100

/** The items of all pages up to `max`, and whether there are more. */
export const readAll = async <O extends OperationName>(
  operation: O,
  input: Input,
  max: number,
): Promise<{ readonly items: readonly ItemOf<O>[]; readonly hasMore: boolean }> => {
  const items: ItemOf<O>[] = []
  for (let cursor: string | undefined; ; ) {
    const query = { ...input.query, limit: PAGE_MAX, cursor }
    const page = (await read(operation, { ...input, query })) as Page<ItemOf<O>>
    items.push(...page.items)
    if (!page.page.has_more) return { items, hasMore: false }
    if (items.length >= max) return { items, hasMore: true }
    cursor = page.page.next_cursor ?? undefined
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The request as a command line, with the variable TOKEN in the place of the token. */
export const curlOf = (operation: string, input: Input): string => {
  const method = methodOf(operation)
  const headers = Object.entries(headersOf(operation, input)).map(
    ([name, value]) => `-H ${quoted(`${name}: ${value}`)}`,
  )
  return [
    `curl -s${method === 'GET' ? '' : ` -X ${method}`} ${quoted(location.origin + addressOf(operation, input))}`,
    '-H "Authorization: Bearer $TOKEN"',
    ...headers,
    ...(input.body === undefined ? [] : [`-d ${quoted(JSON.stringify(input.body))}`]),
  ].join(' \\\n  ')
}
