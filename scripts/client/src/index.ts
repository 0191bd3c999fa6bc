import type { ApiVersion, Operations } from './generated.ts'
import { createSender, type RetryOptions, type Token } from './retry.ts'

export type * from './generated.ts'
export { EffectUnknownError, LedgerError, NoAnswerError } from './errors.ts'
export type { RetryOptions, Token } from './retry.ts'

/** The version of the contract that each request carries. */
export const API_VERSION: ApiVersion = '2026-11-22'

export type LedgerClientOptions = {
  /** `https://ledger.example` */
  readonly baseUrl: string
  readonly token: Token
  readonly retry?: RetryOptions
  /** Ends every request of the client. */
  readonly signal?: AbortSignal
  /** Sends each attempt; the global fetch by default. */
  readonly fetch?: typeof fetch
}

export type OperationName = keyof Operations

/** Parameters, body and headers of an operation: `idempotencyKey` is the header Idempotency-Key. */
export type Input<O extends OperationName> = Operations[O]['request'] & { readonly signal?: AbortSignal | undefined }
type Arguments<O extends OperationName> = object extends Input<O> ? [given?: Input<O>] : [given: Input<O>]

type Answers<O extends OperationName> = Operations[O]['answers']
/** The answer of an operation. With several statuses, `status` tells which `data` it has. */
export type Answer<O extends OperationName> = {
  readonly [S in keyof Answers<O>]: Answers<O>[S] & { readonly status: S; readonly headers: Headers }
}[keyof Answers<O>]

type Page<T> = {
  readonly items: readonly T[]
  readonly page: { readonly next_cursor: string | null; readonly has_more: boolean }
}
type Lists = {
  [O in OperationName]: Answer<O> extends { readonly data: Page<infer T> } ? T : never
}
/** The operations that answer with a page. */
export type ListName = { [O in OperationName]: [Lists[O]] extends [never] ? never : O }[OperationName]

export type LedgerClient = {
  /** Rejects with a LedgerError, a NoAnswerError, or an EffectUnknownError when a write may have had its effect. */
  readonly request: <O extends OperationName>(operation: O, ...input: Arguments<O>) => Promise<Answer<O>>
  /** The items of all pages. */
  readonly list: <O extends ListName>(operation: O, ...input: Arguments<O>) => AsyncGenerator<Lists[O], void, undefined>
}

type Values = Readonly<Record<string, unknown>>
type Anything = {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Values
  readonly body?: object
  readonly signal?: AbortSignal
} & Values

const pathOf = (template: string, parameters: Readonly<Record<string, string>>, query: Values): string => {
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parameters[name] ?? ''))
  const entries = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(entries.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return search === '' ? path : `${path}?${search}`
}

/** `ifMatch` is the header If-Match. */
const headersOf = (values: Values): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name.replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`), String(value)]),
  )

const contentTypeOf = (method: string): string =>
  method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'

export const createLedgerClient = (options: LedgerClientOptions): LedgerClient => {
  const { baseUrl, token, retry, fetch: fetchOnce, signal: ofClient } = options
  const send = createSender({ ...retry, token }, fetchOnce && { fetch: fetchOnce })
  const request = async (operation: string, input: Anything = {}) => {
    const [method = '', template = ''] = operation.split(' ')
    const { path = {}, query = {}, body, signal: ofRequest, ...named } = input
    const { response, data } = await send(baseUrl + pathOf(template, path, query), {
      method,
      headers: {
        'API-Version': API_VERSION,
        ...(body !== undefined && { 'Content-Type': contentTypeOf(method) }),
        ...headersOf(named),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.any([ofClient, ofRequest].filter(signal => signal !== undefined)),
    })
    const { status, headers } = response
    return { status, headers, data, etag: headers.get('etag'), position: headers.get('ledger-position') }
  }
  const list = async function* (operation: string, input: Anything = {}) {
    for (let cursor = input.query?.['cursor'], hasMore = true; hasMore; ) {
      const { data } = await request(operation, { ...input, query: { ...input.query, cursor } })
      const { items, page } = data as Page<unknown>
      yield* items
      cursor = page.next_cursor
      hasMore = page.has_more
    }
  }
  return { request, list } as LedgerClient
}
