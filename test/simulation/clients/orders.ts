import type { Random } from '../random.ts'
import { type Action, etagOf, keyOf, sendWithCopies } from './actor.ts'
import type { Known } from './resources.ts'

/** Actions on orders and on the invoices that are raised from them. */

/** In every customer reference: the log must not have it. */
export const PERSON = 'a person called'
const PERSONS_MAX = 6
/** Few names, so that several requests store the same one at once. */
const referenceOf = (random: Random): string => `${PERSON} ${random.integer(1, PERSONS_MAX)}`

const CURRENCIES = ['USD', 'EUR', 'JPY']

const linesOf = (random: Random) =>
  Array.from({ length: random.integer(1, 3) }, (_, index) => ({
    sku: `sku-${index}`,
    quantity: random.integer(1, 4),
    unit_amount: random.integer(1, 500),
  }))

export const createOrder: Action = async actor => {
  const { client, caller } = actor
  const currency = client.random.pick(CURRENCIES)
  const headers = client.random.chance(0.7) ? { 'idempotency-key': keyOf(actor, 'order') } : {}
  const reference = client.random.chance(0.5) ? { customer_reference: referenceOf(client.random) } : {}
  const body = { currency, lines: linesOf(client.random), ...reference }
  await sendWithCopies(actor, { operation: 'create_order', caller, headers, body }, 'order')
}

export const changeOrder: Action = async actor => {
  const { client, resources, caller } = actor
  const order = resources.pick('order', caller.tenant, client.random)
  if (order === undefined) return createOrder(actor)
  const headers = { 'if-match': await etagOf(actor, order, 'order') }
  const body = client.random.pick([
    { description: `changed by ${client.action}` },
    { lines: linesOf(client.random) },
    { customer_reference: referenceOf(client.random) },
  ])
  const request = { operation: 'change_order', caller, id: order.id, headers, body }
  await sendWithCopies(actor, request, 'order')
}

export const cancelOrDeleteOrder: Action = async actor => {
  const { client, resources, caller } = actor
  const order = resources.pick('order', caller.tenant, client.random)
  if (order === undefined) return
  const headers = { 'if-match': await etagOf(actor, order, 'order') }
  const operation = client.random.pick(['cancel_order', 'delete_order'])
  await sendWithCopies(actor, { operation, caller, id: order.id, headers })
}

/** A client whose request was refused may repeat it later. With an idempotency key the answer must not change. */
const REPEAT_AFTER_REFUSAL_CHANCE = 0.5
const REPEAT_AFTER_REFUSAL_MAX_MS = 3_000

export const raiseInvoice: Action = async actor => {
  const { client, resources, caller } = actor
  const invoiced = new Set(resources.all('invoice').map(({ body }) => body['order_id']))
  const isOpen = ({ body, id }: Known): boolean => body['state'] === 'open' && !invoiced.has(id)
  const order = resources.pick('order', caller.tenant, client.random, isOpen)
  const other = resources.pick('order', caller.tenant, client.random)
  if (order === undefined || other === undefined) return createOrder(actor)
  const headers = client.random.chance(0.8) ? { 'idempotency-key': keyOf(actor, 'invoice') } : {}
  const raise = async ({ id }: Known): Promise<void> => {
    const body = { order_id: id, due_date: '2026-12-31' }
    const request = { operation: 'raise_invoice', caller, headers, body }
    const answer = await sendWithCopies(actor, request, 'invoice')
    if (answer?.status !== 409 || !client.random.chance(REPEAT_AFTER_REFUSAL_CHANCE)) return
    await client.sleep(client.random.next() * REPEAT_AFTER_REFUSAL_MAX_MS)
    resources.learn('invoice', caller.tenant, await client.sendWithRetries(request))
  }
  // A client may use one key for two orders at once by mistake; then one of the two orders must stay as it is.
  await Promise.all(client.random.chance(0.15) ? [raise(order), raise(other)] : [raise(order)])
}

export const approveInvoice: Action = async actor => {
  const { client, resources, caller } = actor
  const invoice = resources.pick('invoice', caller.tenant, client.random, ({ body }) => body['state'] === 'draft')
  if (invoice === undefined) return raiseInvoice(actor)
  const headers = { 'if-match': await etagOf(actor, invoice, 'invoice') }
  const request = { operation: 'approve_invoice', caller, id: invoice.id, headers }
  await sendWithCopies(actor, request, 'invoice')
}

export const voidInvoice: Action = async actor => {
  const { client, resources, caller } = actor
  const invoice = resources.pick('invoice', caller.tenant, client.random)
  if (invoice === undefined) return
  const headers = { 'if-match': await etagOf(actor, invoice, 'invoice') }
  const request = { operation: 'void_invoice', caller, id: invoice.id, headers, body: { reason: 'drawn' } }
  await sendWithCopies(actor, request, 'invoice')
}
