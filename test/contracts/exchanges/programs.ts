import type { Answer } from '../../support/client.ts'
import type { Body } from './exchange.ts'

/** The clients whose exchanges are recorded: programs that a customer might have written against one version. */

type Asked = {
  readonly headers?: Record<string, string>
  readonly body?: Body
  readonly until?: (answer: Answer) => boolean
}
/** `until`: the request is repeated, as the client waits for a state. */
export type Send = (method: string, path: string, requested?: Asked) => Promise<Answer>
type Program = (send: Send, version: string) => Promise<void>

const OLDEST = '2026-11-01'
const key = (name: string) => ({ 'idempotency-key': `recorded-${name}` })
const etagOf = ({ headers }: Answer) => ({ 'if-match': headers.get('etag') ?? '' })
/** The list shows what this client has written. */
const after = ({ headers }: Answer) => ({ 'if-min-position': headers.get('ledger-position') ?? '', prefer: 'wait=5' })

const ORDER = { currency: 'USD', lines: [{ sku: 'tea', quantity: 3, unit_amount: 300 }] }

const approved = async (send: Send, name: string) => {
  const order = await send('POST', '/orders', { headers: key(`${name}-order`), body: ORDER })
  const invoice = await send('POST', '/invoices', { body: { order_id: order.body.id, due_date: '2027-01-31' } })
  const path = `/invoices/${invoice.body.id}:approve`
  return { order, invoice: await send('POST', path, { headers: etagOf(invoice), body: {} }) }
}

const payment = (invoice: Answer, given: object = {}): Body => ({
  invoice_id: invoice.body.id,
  amount: 900,
  currency: 'USD',
  ...given,
})

const shop: Program = async send => {
  const whole = { ...ORDER, customer_reference: 'PO-7713', metadata: { shop: 'one' } }
  const order = await send('POST', '/orders', { headers: key('order'), body: whole })
  await send('POST', '/orders', { headers: key('order'), body: whole })
  const path = `/orders/${order.body.id}`
  const read = await send('GET', path)
  await send('GET', path, { headers: { 'if-none-match': read.headers.get('etag') ?? '' } })
  const patch = { 'content-type': 'application/merge-patch+json' }
  await send('PATCH', path, { headers: { ...etagOf(read), ...patch }, body: { metadata: { shop: null, till: 'two' } } })
  await send('PATCH', path, { headers: { ...etagOf(read), ...patch }, body: { description: 'late' } })
  await send('GET', `${path}/history`)
  const { invoice } = await approved(send, 'second')
  const paid = await send('POST', '/payments', { headers: key('pay'), body: payment(invoice, { reference: 'R-1' }) })
  await send('POST', '/payments', { headers: key('pay'), body: payment(invoice, { reference: 'R-1' }) })
  await send('POST', '/payments', { headers: key('pay'), body: payment(invoice, { reference: 'R-2' }) })
  await send('POST', '/payments', { headers: key('again'), body: payment(invoice) })
  await send('GET', `/invoices/${invoice.body.id}`)
  await send('GET', `/payments?invoice_id=${invoice.body.id}&limit=10`, { headers: after(paid) })
  await send('GET', `/invoices?order_id=${invoice.body.order_id}`, { headers: after(paid) })
  await send('GET', '/idempotency-keys/recorded-pay?operation=create_payment')
}

const accounting: Program = async (send, version) => {
  const { invoice } = await approved(send, 'a')
  const paid = await send('POST', '/payments', { headers: key('a'), body: payment(invoice, { amount: 400 }) })
  await send('GET', `/invoices/${invoice.body.id}`)
  const refund = `/payments/${paid.body.id}:refund`
  await send('POST', refund, { headers: key('part'), body: { amount: 100, reason: 'damaged' } })
  const remaining = version === OLDEST ? {} : { amount: 'remaining' }
  await send('POST', refund, { headers: key('rest'), body: { ...remaining, reason: 'returned' } })
  const refunded = await send('GET', `/payments/${paid.body.id}`)
  await send('GET', `/payments/${paid.body.id}/history`)
  const later = { amount: 100, settlement: 'deferred' }
  const first = await send('POST', '/payments', { headers: key('b'), body: payment(invoice, later) })
  await send('POST', `/payments/${first.body.id}:settle`, { body: {} })
  const second = await send('POST', '/payments', { headers: key('c'), body: payment(invoice, later) })
  await send('POST', `/payments/${second.body.id}:fail`, { body: { code: 'card_declined' } })
  await send('POST', `/payments/${second.body.id}:settle`, { body: {} })
  const order = await send('POST', '/orders', { body: ORDER })
  const open = await send('POST', '/invoices', { body: { order_id: order.body.id, due_date: '2027-01-31' } })
  await send('POST', `/invoices/${open.body.id}:void`, { headers: etagOf(open), body: { reason: 'mistake' } })
  await send('GET', `/invoices/${open.body.id}/history`)
  const async = { ...key('d'), prefer: 'respond-async' }
  const begun = await send('POST', '/payments', { headers: async, body: payment(invoice, { amount: 10 }) })
  const isDone = ({ body }: Answer) => body.state === 'succeeded'
  await send('GET', begun.headers.get('location') ?? '', { until: isDone })
  await send('GET', `/payments?order_id=${refunded.body.order_id}&state=failed`, { headers: after(begun) })
}

const warehouse: Program = async send => {
  const order = await send('POST', '/orders', { body: ORDER })
  const latest = await send('POST', '/orders', { body: ORDER })
  const page = await send('GET', '/orders?limit=1', { headers: after(latest) })
  await send('GET', `/orders?limit=1&cursor=${page.body.page.next_cursor}`)
  const started = await send('POST', '/exports', { headers: key('e'), body: { resource: 'orders', format: 'jsonl' } })
  const isDone = ({ body }: Answer) => body.state === 'succeeded'
  const done = await send('GET', started.headers.get('location') ?? '', { until: isDone })
  await send('GET', `/exports/${done.body.id}/manifest`)
  await send('GET', '/operations?kind=export&limit=1', { until: ({ body }) => body.items[0]?.state === 'succeeded' })
  const hasFact = ({ body }: Answer) => body.items.length > 0
  await send('GET', '/events?type=order.created', { until: hasFact })
  const issued = await send('POST', '/api-keys', { body: { name: 'nightly', scopes: ['orders:read'] } })
  const asKey = { 'x-api-key': issued.body.secret, authorization: '' }
  await send('GET', `/orders/${order.body.id}`, { headers: asKey })
  await send('GET', '/invoices', { headers: asKey })
  await send('POST', '/orders', { headers: asKey, body: ORDER })
  await send('DELETE', `/api-keys/${issued.body.id}`)
}

const NO_ORDER = 'ord_00000000000000000000000000'

const careless: Program = async send => {
  const order = await send('POST', '/orders', { body: ORDER })
  const path = `/orders/${order.body.id}`
  await send('GET', path, { headers: { authorization: '' } })
  await send('GET', path, { headers: { authorization: 'Bearer nonsense' } })
  await send('GET', `/orders/${NO_ORDER}`)
  await send('GET', '/nowhere')
  await send('PUT', '/orders')
  await send('GET', path, { headers: { accept: 'text/html' } })
  await send('GET', path, { headers: { 'api-version': '1999-01-01' } })
  await send('GET', '/orders?colour=red')
  await send('GET', '/orders?limit=1000')
  await send('GET', '/orders?cursor=nonsense')
  await send('POST', '/orders', { body: { currency: 'XXX', lines: [{ sku: '', quantity: 0 }] } })
  await send('POST', '/orders', { headers: { 'content-type': 'text/plain' }, body: ORDER })
  await send('POST', `${path}:cancel`, { body: {} })
  await send('POST', `${path}:cancel`, { headers: { 'if-match': 'unquoted' }, body: {} })
  const { invoice } = await approved(send, 'careless')
  await send('POST', '/payments', { body: payment(invoice) })
  await send('POST', '/payments', { headers: key('much'), body: payment(invoice, { amount: 901 }) })
  await send('POST', '/payments', { headers: key('other'), body: payment(invoice, { currency: 'EUR' }) })
  await send('POST', `/invoices/${invoice.body.id}:approve`, { headers: etagOf(invoice), body: {} })
  await send('DELETE', path, { headers: etagOf(order) })
  await send('GET', path)
}

/** By the name of the client. */
export const programs: Readonly<Record<string, Program>> = { shop, accounting, warehouse, careless }
