import { z } from 'zod'
import { orderPage } from '../../../projections/orders/queries.ts'
import { isRejection } from '../../../streams/decider.ts'
import { idSchema, type OrderId } from '../../../streams/ids.ts'
import { replay } from '../../commands/idempotency/creation.ts'
import { type KindOf, orderEntity } from '../../commands/entities.ts'
import { createOrderOnce } from '../../commands/orders.ts'
import { handle, type Handled } from '../../commands/commandHandler.ts'
import { idOfKey } from '../../commands/idempotency/record.ts'
import { type PersonalText, storeUnlessBound, withTexts } from '../../personalTexts/personalTexts.ts'
import { decisionOn } from '../../commands/streamGrowth.ts'
import { readPage } from './collection.ts'
import { idempotencyRecordIfKeyed, idempotencyRecordOf } from '../request/idempotencyKey.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { replyToCommand, replyToCreation, ifMatchOf, readOne, textsFor, visibleState } from './commonReplies.ts'
import { type AnyRoute, type Reply, route } from '../route.ts'
import type { AnyLogCall, Call, LogCall } from '../services.ts'
import {
  CREATED_HEADERS,
  asOfQuery,
  changedResource,
  resourceById,
  textSchema,
  TOO_MANY_KEYS,
} from './commonSchemas.ts'
import { newOrder, orderFilters, orderPatch, orderSchema, render, storedLines } from './orderSchemas.ts'
import { pageQuery, listOf } from './paging.ts'

const byId = z.object({ id: idSchema('ord') })
const PATH = '/orders'
const common = { tag: 'Orders' } as const
const changed = changedResource(orderSchema, 'The order.')

/** The customer reference as a personal text of the caller's tenant; null where there is none. */
const referenceOf = ({ principal }: AnyLogCall, text: string | null | undefined): PersonalText | null =>
  typeof text === 'string' ? { tenant: principal.tenant, kind: 'customer_reference', text } : null

type NewOrder = z.output<typeof newOrder>

/** The request as it is compared with a later one under its key: in the log the keyed hash stands for the reference. */
const comparable = async (call: LogCall<unknown, unknown, NewOrder>, reference: PersonalText | null) => ({
  ...call.body,
  customer_reference: reference === null ? null : await call.personalTexts.digest(reference),
})

/** Creates the order, or finds the one that the same key created. */
const createOnce = async (call: Call<unknown, unknown, NewOrder>) => {
  const { body, idempotency, personalTexts } = call
  const reference = referenceOf(call, body.customer_reference)
  const { currency, description, metadata } = body
  return createOrderOnce(call, {
    key: idempotency,
    idempotencyRecord: idempotencyRecordIfKeyed(call, await comparable(call, reference)),
    terms: { description, currency, lines: storedLines(body.lines), metadata },
    storeReference: reference === null ? undefined : answer => storeUnlessBound(personalTexts, reference, answer),
  })
}

/** The outcome of the first request with this key; undefined for a new key. */
const replayed = async (call: LogCall<unknown, unknown, NewOrder, 'required'>) => {
  const { ledger, idempotency, body } = call
  const reference = referenceOf(call, body.customer_reference)
  const record = idempotencyRecordOf(idempotency, call, await comparable(call, reference))
  return replay(ledger, orderEntity, idOfKey('ord', idempotency), record)
}

const createOrder = route({
  ...common,
  method: 'POST',
  path: PATH,
  operationId: 'create_order',
  summary: 'Create an order',
  scope: 'orders:write',
  body: newOrder,
  idempotencyKey: 'honoured',
  responses: { 201: { ...changed, headers: CREATED_HEADERS } },
  handler: async call => replyToCreation(call, await createOnce(call), PATH, render),
  replay: async call => {
    const first = await replayed(call)
    return first && replyToCreation(call, first, PATH, render)
  },
})

const readOrder = route({
  ...common,
  method: 'GET',
  path: `${PATH}/{id}`,
  operationId: 'read_order',
  summary: 'Read an order',
  scope: 'orders:read',
  params: byId,
  query: asOfQuery,
  ...resourceById(orderSchema, 'The order.'),
  handler: call => readOne(call, orderEntity, call.params.id, render),
})

const listOrders = route({
  ...common,
  method: 'GET',
  path: PATH,
  operationId: 'list_orders',
  summary: 'List orders, newest first',
  scope: 'orders:read',
  query: z.object({ ...pageQuery, ...orderFilters }),
  ...listOf(orderSchema),
  handler: call => readPage(call, { name: 'orders_v1', page: orderPage, render }),
})

/** The order before a command with If-Match, and its texts, which its tag depends on. Throws Problem: 404. */
const beforeCommand = async (call: Call<{ id: OrderId }, unknown, unknown>) => {
  const order = await visibleState(call, orderEntity, call.params.id)
  return { order, texts: await textsFor(call, [order.row]) }
}

/** The change without the customer reference, unless that is removed. */
const changeOf = ({ metadata, lines, customer_reference, description }: z.output<typeof orderPatch>) => ({
  type: 'ChangeOrder' as const,
  ...(customer_reference === null ? { customer_reference } : {}),
  ...(description === undefined ? {} : { description }),
  ...(lines === undefined ? {} : { lines: storedLines(lines) }),
  ...(metadata === undefined ? {} : { metadata }),
})

type ChangeCall = Call<{ id: OrderId }, unknown, z.output<typeof orderPatch>>

/** The reply to a change that this order refuses; undefined otherwise. */
const refusedChange = async (call: ChangeCall, { order, texts }: Awaited<ReturnType<typeof beforeCommand>>) => {
  const { row } = order
  if (!ifMatchOf(call, texts)(row)) return replyToChange(call, { ok: false, stale: order })
  const { customer_reference } = call.body
  const shown = withTexts(row, texts).customer_reference
  // The text stands for its token, which it has only if it is the present one.
  const token = customer_reference === shown ? row.customer_reference : customer_reference
  const command = { ...changeOf(call.body), ...(token === undefined ? {} : { customer_reference: token }) }
  const decided = decisionOn(call.ledger, orderEntity, order, command)
  return isRejection(decided) ? replyToChange(call, { ok: false, ...decided }) : undefined
}

const replyToChange = (call: ChangeCall, handled: Handled<KindOf<typeof orderEntity>>): Promise<Reply> => {
  if (!('rejected' in handled) || handled.rejected !== 'validation_failed') return replyToCommand(call, handled, render)
  throw new Problem('validation_failed', { errors: [{ pointer: '/metadata', code: 'custom', detail: TOO_MANY_KEYS }] })
}

const changeOrder = route({
  ...common,
  method: 'PATCH',
  path: `${PATH}/{id}`,
  operationId: 'change_order',
  summary: 'Change members of an order',
  scope: 'orders:write',
  params: byId,
  body: orderPatch,
  bodyType: 'application/merge-patch+json',
  ifMatch: 'required',
  responses: { 200: changed },
  errors: ['order_state_conflict', 'too_many_changes'],
  handler: async call => {
    const { ledger, params, body, context, personalTexts } = call
    const before = await beforeCommand(call)
    // Before the new reference is stored: a text that no event names would have to be erased all the same.
    const refused = await refusedChange(call, before)
    if (refused) return refused
    const reference = referenceOf(call, body.customer_reference)
    const token = reference && ((await personalTexts.store(reference)) ?? (await personalTexts.storeAgain(reference)))
    const command = { ...changeOf(body), ...(token === null ? {} : { customer_reference: token }) }
    const request = { command, context, ifMatch: ifMatchOf(call, before.texts) }
    return replyToChange(call, await handle(ledger, orderEntity, params.id, request))
  },
})

const cancelOrder = route({
  ...common,
  method: 'POST',
  path: `${PATH}/{id}:cancel`,
  operationId: 'cancel_order',
  summary: 'Cancel an open order',
  scope: 'orders:write',
  params: byId,
  body: z.strictObject({ reason: textSchema.nullable().default(null) }).default({ reason: null }),
  ifMatch: 'required',
  responses: { 200: changed },
  errors: ['order_state_conflict', 'order_has_invoices'],
  handler: async call => {
    const { texts } = await beforeCommand(call)
    const command = { type: 'CancelOrder' as const, reason: call.body.reason }
    const request = { command, context: call.context, ifMatch: ifMatchOf(call, texts) }
    return replyToCommand(call, await handle(call.ledger, orderEntity, call.params.id, request), render)
  },
})

const deleteOrder = route({
  ...common,
  method: 'DELETE',
  path: `${PATH}/{id}`,
  operationId: 'delete_order',
  summary: 'Delete an order; its history remains readable',
  scope: 'orders:write',
  params: byId,
  ifMatch: 'required',
  responses: { 204: { description: 'The resource is deleted.', headers: ['Ledger-Position'] } },
  errors: ['order_has_invoices'],
  handler: async call => {
    const { texts } = await beforeCommand(call)
    const command = { type: 'DeleteOrder' as const }
    const request = { command, context: call.context, ifMatch: ifMatchOf(call, texts) }
    const handled = await handle(call.ledger, orderEntity, call.params.id, request)
    if (!handled.ok) return replyToCommand(call, handled, render)
    return { status: 204, headers: { 'Ledger-Position': handled.position.toString() } }
  },
})

export const orderRoutes: readonly AnyRoute[] = [
  createOrder,
  listOrders,
  readOrder,
  changeOrder,
  cancelOrder,
  deleteOrder,
]
