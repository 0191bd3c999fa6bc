import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkResponse } from './openapiCheck.ts'

/** One response as tests see it. */
export type Answer = {
  readonly status: number
  readonly headers: Headers
  /** The body as text, which a replay must repeat byte by byte. */
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- A test reads whatever members it expects to be there.
  readonly body: any
}

export type Asked = {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The raw body, in place of `body`. Bytes are sent without a content type, unless the headers have one. */
  readonly raw?: string | Uint8Array<ArrayBuffer>
}

export type Client = {
  readonly request: (method: string, path: string, requested?: Asked) => Promise<Answer>
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>
  readonly post: (path: string, body?: unknown, headers?: Readonly<Record<string, string>>) => Promise<Answer>
}

const OVERLOADED_TRIES_MAX = 20

/** Sends a request again after a second while the service sheds load, as it may on a loaded machine. */
export const retryWhile = async <T>(ask: () => Promise<T>, isRefused: (answer: T) => unknown): Promise<T> => {
  for (let tries = 1; ; tries++) {
    const answer = await ask()
    if (tries === OVERLOADED_TRIES_MAX || !(await isRefused(answer))) return answer
    await sleep(1_000)
  }
}

/** A response to HEAD has no problem document, so that its status and headers count. */
export const isOverloaded = ({ status, text, headers, body }: Answer): boolean =>
  body?.code === 'overloaded' || (status === 503 && text === '' && headers.has('retry-after'))

/** `fetch` with these retries, for tests that need the whole response. */
export const retryingFetch = (url: string | URL, init?: RequestInit): Promise<Response> =>
  retryWhile(
    () => fetch(url, init),
    async answer => answer.status === 503 && (await answer.clone().text()).includes('"overloaded"'),
  )

/**
 * A client over a real socket. Every response is checked against openapi.json. Requests are retried while the service
 * sheds load.
 */
export const clientOf = (api: string, token?: string): Client => {
  const request: Client['request'] = (method, path, requested) =>
    retryWhile(() => ask(method, path, requested), isOverloaded)
  const ask: Client['request'] = async (method, path, { body, headers = {}, raw } = {}) => {
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(`${api}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(typeof content === 'string' ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(content === undefined ? {} : { body: content }),
    })
    const text = await response.text()
    const answer: Answer = { status: response.status, headers: response.headers, text, body: parsedJson(text) }
    await checkResponse({ method, path, ...answer })
    return answer
  }
  return {
    request,
    get: (path, headers = {}) => request('GET', path, { headers }),
    post: (path, body, headers = {}) => request('POST', path, { body, headers }),
  }
}

/** The JSON value of a text; undefined if it is none. */
export const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const newKey = (): string => randomUUID()

export const anOrder = (amount = 900) => ({
  currency: 'USD',
  lines: [{ sku: 'tea', quantity: 1, unit_amount: amount }],
})

/** An approved invoice over the amount, ready to be paid. */
export const approvedInvoice = async (
  client: Client,
  amount = 900,
  terms: object = {},
): Promise<{ orderId: string; invoiceId: string; etag: string }> => {
  const order = await client.post('/orders', { ...anOrder(amount), ...terms })
  const invoice = await client.post('/invoices', { order_id: order.body.id })
  const approved = await client.post(
    `/invoices/${invoice.body.id}:approve`,
    {},
    { 'if-match': invoice.headers.get('etag') ?? '' },
  )
  if (approved.status !== 200) throw new Error(`No approved invoice: ${order.text} ${invoice.text} ${approved.text}`)
  return { orderId: order.body.id, invoiceId: invoice.body.id, etag: approved.headers.get('etag') ?? '' }
}

/** A payment's body, with the given members replaced. */
export const aPayment = (invoiceId: string, given: object = {}) => ({
  invoice_id: invoiceId,
  amount: 100,
  currency: 'USD',
  ...given,
})

/** Pays with the key, a new one by default. */
export const pay = (client: Client, payment: object, key: string = newKey()): Promise<Answer> =>
  client.post('/payments', payment, { 'idempotency-key': key })

/** The parts of a response that a replay must repeat byte for byte. */
export const recordOf = ({ status, text, headers }: Answer) => ({
  status,
  text,
  location: headers.get('location'),
  etag: headers.get('etag'),
  position: headers.get('ledger-position'),
})
export const isReplay = ({ headers }: Answer): boolean => headers.get('idempotent-replayed') === 'true'

/** Works on each item, at most `width` concurrently; the results are in the order of the items. */
export const inParallel = async <T, R>(
  width: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> => {
  const results: R[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++
      results[index] = await work(items[index] as T, index)
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  return results
}

/** A problem without its individual members, for comparisons. */
export const wordsOf = ({ body: { correlation_id: _id, instance: _instance, ...words } }: Answer): object => words
