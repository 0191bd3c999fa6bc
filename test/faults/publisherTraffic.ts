import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, aPayment, anOrder, approvedInvoice, type Asked } from '../support/client.ts'
import { type Client, newKey, pay } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'

/** Clients that create orders, payments and exports during a fault, and record every response. */

export type Request = { readonly status: number; readonly tookMs: number }

export type Traffic = {
  readonly requests: readonly Request[]
  /** Resolves when at least this many requests have been answered. */
  readonly until: (count: number) => Promise<unknown>
  /** Waits for the requests under way. Throws the first error of a client. */
  readonly stop: () => Promise<void>
}

/** Of a client. Without the pause, the clients would take the processor time that the fault and its end need. */
const PAUSE_BETWEEN_SALES_MS = 900

/** A client that adds the headers to every request, and records it. */
const recording = (client: Client, requests: Request[], headers: Readonly<Record<string, string>>): Client => {
  const request = async (method: string, path: string, requested: Asked = {}): Promise<Answer> => {
    const beganMs = performance.now()
    const answer = await client.request(method, path, { ...requested, headers: { ...headers, ...requested.headers } })
    requests.push({ status: answer.status, tookMs: performance.now() - beganMs })
    return answer
  }
  return {
    request,
    get: (path, more = {}) => request('GET', path, { headers: more }),
    post: (path, body, more = {}) => request('POST', path, { body, headers: more }),
  }
}

/** An invoice that is approved, paid in two parts and refunded in part, and an order that is cancelled. */
export const sell = async (client: Client): Promise<void> => {
  const { invoiceId } = await approvedInvoice(client, 900)
  await pay(client, aPayment(invoiceId, { amount: 400 }))
  const payment = await pay(client, aPayment(invoiceId, { amount: 500 }))
  const refund = { amount: 200, reason: 'It came too late.' }
  await client.post(`/payments/${payment.body.id}:refund`, refund, { 'idempotency-key': newKey() })
  const order = await client.post('/orders', anOrder())
  const ifMatch = { 'if-match': order.headers.get('etag') ?? '' }
  await client.post(`/orders/${order.body.id}:cancel`, { reason: 'It was not wanted.' }, ifMatch)
}
export const FACTS_PER_SALE = 8

/** Requests an export, and waits until it has succeeded. */
export const makeExport = async (client: Client): Promise<void> => {
  const { body } = await client.post('/exports', { resource: 'orders', format: 'csv' })
  await eventually(async () => (await client.get(`/operations/${body.id}`)).body.state === 'succeeded')
}

/** Runs one loop per client. `headers` are added to each of its requests. */
export const startTraffic = (
  callers: readonly { readonly client: Client; readonly headers?: Readonly<Record<string, string>> }[],
): Traffic => {
  const requests: Request[] = []
  const stopping = new AbortController()
  const sellUntilStopped = async (client: Client): Promise<void> => {
    while (!stopping.signal.aborted) {
      await sell(client)
      await delay(PAUSE_BETWEEN_SALES_MS, undefined, { signal: stopping.signal }).catch(() => undefined)
    }
  }
  const running = Promise.allSettled(
    callers.map(({ client, headers = {} }) => sellUntilStopped(recording(client, requests, headers))),
  )
  return {
    requests,
    until: count => eventually(() => requests.length >= count),
    stop: async () => {
      stopping.abort()
      const failed = (await running).find(outcome => outcome.status === 'rejected')
      if (failed) throw failed.reason
    },
  }
}
