import { z } from 'zod'
import type { OrderRow } from '../../../projections/orders/projection.ts'
import { orderPage } from '../../../projections/orders/queries.ts'
import { idSchema, type OrderId } from '../../../streams/ids.ts'
import { inKeyTurn } from '../../commands/idempotencyKeyTurns.ts'
import { create, replay } from '../../commands/idempotentCreation.ts'
import { orderEntity } from '../../commands/entities.ts'
import { handle } from '../../commands/commandHandler.ts'
import { idOfKey, randomId } from '../../commands/identifiers.ts'
import { type PersonalText, storeUnlessBound, type Texts } from '../../commands/personalTexts.ts'
import { readPage } from './collection.ts'
import { idempotencyRecordIfKeyed, idempotencyRecordOf } from '../request/idempotencyKey.ts'
import { mergePatch } from '../request/mergePatch.ts'
import { Problem } from '../response/problemCatalogue.ts'
import {
  replyToCommand,
  replyToCreation,
  changedHeaders,
  ifMatchOf,
  readOne,
  textsFor,
  visibleRow,
} from './commonReplies.ts'
import { type AnyRoute, type Call, route } from '../route.ts'
import { asOfQuery, metadataSchema, resourceById, textSchema } from './commonSchemas.ts'
import { newOrder, orderFilters, orderPatch, orderSchema, render, storedLines } from './orderSchemas.ts'
import { pageQuery, listOf } from './paging.ts'
import { violationsOf } from '../request/violations.ts'

/** The endpoints of orders. */

const byId = z.object({ id: idSchema('ord') })
const PATH = '/orders'
const common = { tag: 'Orders', rateClass: 'default' } as const
const changed = { description: 'The order.', schema: orderSchema, headers: ['ETag', 'Ledger-Position'] } as const

type AnyCall = Call<unknown, unknown, unknown>

/** The customer reference as a personal text of the caller's tenant; null where there is none. */
const referenceOf = ({ principal }: AnyCall, text: string | null | undefined): PersonalText | null =>
  typeof text === 'string' ? { tenant: principal.tenant, kind: 'customer_reference', text } : null

type CreateCall = Call<unknown, unknown, z.output<typeof newOrder>>

/** The request as it is compared with a later one under its key: in the log the keyed hash stands for the reference. */
const comparable = async (call: CreateCall, reference: PersonalText | null) => ({
  ...call.body,
  customer_reference: reference === null ? null : await call.personalTexts.digest(reference),
})

/** Creates the order, or finds the one that the same key created. */
const createOnce = async (call: CreateCall) => {
  const { body, ledger, context, idempotency, personalTexts } = call
  const id = idempotency ? idOfKey('ord', idempotency) : randomId('ord', ledger.world)
  const reference = referenceOf(call, body.customer_reference)
  const idempotencyRecord = idempotencyRecordIfKeyed(call, await comparable(call, reference))
  const createWith = (customer_reference: string | null) => {
    const { currency, description, metadata } = body
    const terms = { customer_reference, description, currency, lines: storedLines(body.lines), metadata }
    const command = { type: 'CreateOrder' as const, ...terms, claim: idempotencyRecord }
    return create(ledger, orderEntity, id, { command, context, idempotencyRecord })
  }
  if (reference === null) return createWith(null)
  const answerOfKey = async () =>
    idempotencyRecord === null ? undefined : replay(ledger, orderEntity, id, idempotencyRecord)
  const created = await inKeyTurn(ledger, id, async () => {
    const stored = await storeUnlessBound(personalTexts, reference, answerOfKey)
    return 'answer' in stored ? stored.answer : createWith(stored.token)
  })
  if (created.kind !== 'key_reused' || idempotency === undefined) return created
  // An earlier build recorded the reference itself.
  const formerly = await replay(ledger, orderEntity, id, idempotencyRecordOf(idempotency, call, body))
  return formerly === undefined || formerly.kind === 'key_reused' ? created : formerly
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
  responses: { 201: { ...changed, headers: ['Location', 'ETag', 'Ledger-Position', 'Idempotent-Replayed'] } },
  errors: [],
  handler: async call => replyToCreation(call, await createOnce(call), PATH, render),
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

/** The metadata after the patch. Throws Problem when it exceeds its limits as a whole. */
const patchedMetadata = (current: OrderRow['metadata'], patch: z.output<typeof orderPatch>['metadata']) => {
  const merged = metadataSchema.safeParse(patch === null ? {} : mergePatch(current, patch))
  if (merged.success) return merged.data
  throw new Problem('validation_failed', { errors: violationsOf(merged.error, '', ['metadata']) })
}

/** The order before a command with If-Match, and its texts, which its tag depends on. Throws Problem: 404. */
const beforeCommand = async (
  call: Call<{ id: OrderId }, unknown, unknown>,
): Promise<{ readonly row: OrderRow; readonly texts: Texts }> => {
  const row = await visibleRow(call, orderEntity, call.params.id)
  return { row, texts: await textsFor(call, [row]) }
}

/** The token of the new reference; absent when the patch leaves it as it is. */
const patchedReference = async (call: AnyCall, text: string | null | undefined) => {
  const reference = referenceOf(call, text)
  if (reference === null) return text === null ? { customer_reference: null } : {}
  const { personalTexts } = call
  return { customer_reference: (await personalTexts.store(reference)) ?? (await personalTexts.storeAgain(reference)) }
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
    const { metadata, lines, customer_reference, description } = call.body
    // The patch applies to the revision that If-Match names: if the order has changed, the precondition fails.
    const { row: current, texts } = await beforeCommand(call)
    const ifMatch = ifMatchOf(call, texts)
    // Before the new reference is stored: a text that no event names would have to be erased all the same.
    if (!ifMatch(current)) return replyToCommand(call, { ok: false, stale: { row: current } }, render)
    const command = {
      type: 'ChangeOrder' as const,
      ...(await patchedReference(call, customer_reference)),
      ...(description === undefined ? {} : { description }),
      ...(lines === undefined ? {} : { lines: storedLines(lines) }),
      ...(metadata === undefined ? {} : { metadata: patchedMetadata(current.metadata, metadata) }),
    }
    const request = { command, context: call.context, ifMatch }
    return replyToCommand(call, await handle(call.ledger, orderEntity, call.params.id, request), render)
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
    const request = {
      command: { type: 'DeleteOrder' as const },
      context: call.context,
      ifMatch: ifMatchOf(call, texts),
    }
    const handled = await handle(call.ledger, orderEntity, call.params.id, request)
    if (!handled.ok) return replyToCommand(call, handled, render)
    return { status: 204, headers: { 'Ledger-Position': changedHeaders(call, handled)['Ledger-Position'] } }
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
