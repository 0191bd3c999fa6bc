import { randomUUID } from 'node:crypto'
import { checkResponse } from './contract.ts'

/** What the tests see of one answer. */
export type Answer = {
  readonly status: number
  readonly headers: Headers
  /** The body's bytes as text: what a replay must repeat. */
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- A test reads whatever members it expects to be there.
  readonly body: any
}

export type Asked = {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly raw?: string
}

export type Client = {
  readonly request: (method: string, path: string, asked?: Asked) => Promise<Answer>
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>
  readonly post: (path: string, body?: unknown, headers?: Readonly<Record<string, string>>) => Promise<Answer>
}

/** A client over a real socket. Every answer that it gets is checked against openapi.json. */
export const clientOf = (api: string, token?: string): Client => {
  const request: Client['request'] = async (method, path, { body, headers = {}, raw } = {}) => {
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(`${api}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(content === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(content === undefined ? {} : { body: content }),
    })
    const text = await response.text()
    const answer = { status: response.status, headers: response.headers, text, body: parsed(text) }
    await checkResponse(api, { method, path, ...answer })
    return answer
  }
  return {
    request,
    get: (path, headers = {}) => request('GET', path, { headers }),
    post: (path, body, headers = {}) => request('POST', path, { body, headers }),
  }
}

const parsed = (text: string): unknown => {
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
): Promise<{ orderId: string; invoiceId: string; etag: string }> => {
  const order = await client.post('/orders', anOrder(amount))
  const invoice = await client.post('/invoices', { order_id: order.body.id })
  const approved = await client.post(
    `/invoices/${invoice.body.id}:approve`,
    {},
    { 'if-match': invoice.headers.get('etag') ?? '' },
  )
  if (approved.status !== 200) throw new Error(`No approved invoice: ${order.text} ${invoice.text} ${approved.text}`)
  return { orderId: order.body.id, invoiceId: invoice.body.id, etag: approved.headers.get('etag') ?? '' }
}
