import { z } from 'zod'
import type { OrderRow } from '../../../projections/orders/projection.ts'
import { orderPage, orderView } from '../../../projections/orders/queries.ts'
import { idSchema } from '../../../streams/ids.ts'
import { AMOUNT_MAX } from '../../../streams/money.ts'
import { create } from '../../commands/idempotentCreation.ts'
import { orderEntity } from '../../commands/entities.ts'
import { handle } from '../../commands/commandHandler.ts'
import { idOfKey, randomId } from '../../commands/identifiers.ts'
import { readPage } from './collection.ts'
import { idempotencyRecordIfKeyed } from '../request/idempotencyKey.ts'
import { mergePatch } from '../request/mergePatch.ts'
import { Problem } from '../response/problemCatalogue.ts'
import { replyToCommand, replyToCreation, changedHeaders, ifMatchOf, readOne, visible } from './commonReplies.ts'
import { type AnyRoute, route } from '../route.ts'
import {
  amountSchema,
  asOfQuery,
  currencySchema,
  exponentSchema,
  metadataPatchSchema,
  metadataSchema,
  resourceShape,
  textSchema,
  resourceById,
} from './commonSchemas.ts'
import { createdQuery, pageQuery, listOf } from './paging.ts'
import { violationsOf } from '../request/violations.ts'

/** The endpoints of orders. */

const LINES_MAX = 200
const QUANTITY_MAX = 1_000_000

const newLine = z.strictObject({
  sku: textSchema,
  description: textSchema.nullable().default(null),
  quantity: z.int().min(1).max(QUANTITY_MAX),
  unit_amount: amountSchema,
})

const newLines = z
  .array(newLine)
  .min(1)
  .max(LINES_MAX)
  .refine(lines => totalOf(lines) <= AMOUNT_MAX, { message: `The lines add up to more than ${AMOUNT_MAX}.` })

const totalOf = (lines: readonly { quantity: number; unit_amount: number }[]): bigint =>
  lines.reduce((sum, { quantity, unit_amount }) => sum + BigInt(quantity) * BigInt(unit_amount), 0n)

const newOrder = z
  .strictObject({
    customer_reference: textSchema.nullable().default(null),
    description: textSchema.nullable().default(null),
    currency: currencySchema,
    lines: newLines,
    metadata: metadataSchema.default({}),
  })
  .meta({ id: 'NewOrder' })

const orderSchema = z
  .object({
    id: idSchema('ord'),
    state: z.enum(['open', 'invoiced', 'completed', 'cancelled']),
    ...resourceShape,
    customer_reference: z.string().nullable(),
    description: z.string().nullable(),
    currency: currencySchema,
    exponent: exponentSchema,
    lines: z.array(
      z.object({
        sku: z.string(),
        description: z.string().nullable(),
        quantity: z.int(),
        unit_amount: amountSchema,
      }),
    ),
    total_amount: amountSchema,
  })
  .meta({ id: 'Order' })

/** The filters of lists and exports of orders. */
export const orderFilters = {
  ...createdQuery,
  state: orderSchema.shape.state.optional(),
  currency: currencySchema.optional(),
}

const render: (row: OrderRow) => z.input<typeof orderSchema> = orderView

const storedLines = (lines: z.output<typeof newLines>) =>
  lines.map(line => ({ ...line, unit_amount: BigInt(line.unit_amount) }))

const byId = z.object({ id: idSchema('ord') })
const PATH = '/orders'
const common = { tag: 'Orders', rateClass: 'default' } as const
const changed = { description: 'The order.', schema: orderSchema, headers: ['ETag', 'Ledger-Position'] } as const

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
  handler: async call => {
    const { body, ledger, context, idempotency } = call
    const id = idempotency ? idOfKey('ord', idempotency) : randomId('ord', ledger.world)
    const idempotencyRecord = idempotencyRecordIfKeyed(call, body)
    const command = { type: 'CreateOrder' as const, ...body, lines: storedLines(body.lines), claim: idempotencyRecord }
    const created = await create(ledger, orderEntity, id, { command, context, idempotencyRecord })
    return replyToCreation(call, created, PATH, render)
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

// A null member is removed (RFC 7396), so a nullable member becomes null. Lines cannot be removed.
const orderPatch = z
  .strictObject({
    customer_reference: textSchema.nullable().optional(),
    description: textSchema.nullable().optional(),
    lines: newLines.optional(),
    metadata: metadataPatchSchema.nullable().optional(),
  })
  .meta({ id: 'OrderPatch' })

/** The metadata after the patch. Throws Problem when it exceeds its limits as a whole. */
const patchedMetadata = (current: OrderRow['metadata'], patch: z.output<typeof orderPatch>['metadata']) => {
  const merged = metadataSchema.safeParse(patch === null ? {} : mergePatch(current, patch))
  if (merged.success) return merged.data
  throw new Problem('validation_failed', { errors: violationsOf(merged.error, '', ['metadata']) })
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
  errors: ['order_state_conflict'],
  handler: async call => {
    const { metadata, lines, customer_reference, description } = call.body
    const { row } = await call.ledger.aggregates.load(orderEntity, call.params.id)
    // The patch applies to the revision that If-Match names: if the order has changed, the precondition fails.
    const current = visible(call, row)
    const command = {
      type: 'ChangeOrder' as const,
      ...(customer_reference === undefined ? {} : { customer_reference }),
      ...(description === undefined ? {} : { description }),
      ...(lines === undefined ? {} : { lines: storedLines(lines) }),
      ...(metadata === undefined ? {} : { metadata: patchedMetadata(current.metadata, metadata) }),
    }
    const request = { command, context: call.context, ifMatch: ifMatchOf(call) }
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
    const command = { type: 'CancelOrder' as const, reason: call.body.reason }
    const request = { command, context: call.context, ifMatch: ifMatchOf(call) }
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
    const request = {
      command: { type: 'DeleteOrder' as const },
      context: call.context,
      ifMatch: ifMatchOf(call),
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
