import { SECOND_MS } from '../../lib/time.ts'
import { z } from 'zod'
import type { PageRequest } from '../../../projections/listQueries.ts'
import type { PaymentRow } from '../../../projections/payments/projection.ts'
import { paymentPage, paymentView } from '../../../projections/payments/queries.ts'
import { idSchema, withPrefix } from '../../../streams/ids.ts'
import { PAYMENT_DEADLINE_MS, waitMaxMs } from '../../settings/timeBudgets.ts'
import { paymentEntity } from '../../commands/entities.ts'
import { idOfKey } from '../../commands/idempotency/record.ts'
import type { CreationResult } from '../../commands/idempotency/creation.ts'
import { type NewPayment, pay, replayPayment } from '../../commands/payments.ts'
import { readPage } from './collection.ts'
import { columnFilters, referenceOf } from './paymentReferences.ts'
import { idempotencyRecordOf } from '../request/idempotencyKey.ts'
import { renderPaymentOperation } from './operations.ts'
import { operationSchema } from './operationSchema.ts'
import { replyToCreation, readOne } from './commonReplies.ts'
import { type AnyRoute, type Reply, route } from '../route.ts'
import type { LogCall, Preference } from '../services.ts'
import {
  CREATED_HEADERS,
  amountSchema,
  asOfQuery,
  currencySchema,
  exponentSchema,
  metadataSchema,
  resourceShape,
  sumSchema,
  textSchema,
  resourceById,
} from './commonSchemas.ts'
import { createdQuery, pageQuery, listOf } from './paging.ts'

const settlementSchema = z.enum(['immediate', 'deferred'])

const newPayment = z
  .strictObject({
    invoice_id: idSchema('inv'),
    amount: amountSchema,
    currency: currencySchema,
    reference: textSchema
      .nullable()
      .default(null)
      .meta({ description: 'The caller’s own reference for the payment, permanently unique within the tenant.' }),
    settlement: settlementSchema.default('immediate'),
    metadata: metadataSchema.default({}),
  })
  .meta({ id: 'NewPayment' })

export const paymentSchema = z
  .object({
    id: idSchema('pay'),
    state: z.enum(['pending', 'succeeded', 'failed', 'partially_refunded', 'refunded']),
    ...resourceShape,
    invoice_id: idSchema('inv'),
    order_id: idSchema('ord'),
    amount: amountSchema,
    currency: currencySchema,
    exponent: exponentSchema,
    reference: z
      .string()
      .nullable()
      .meta({ description: 'Also null after an operator has erased it, which changes the ETag.' }),
    settlement: settlementSchema,
    failure: z.object({ code: z.string() }).nullable(),
    refunded_amount: sumSchema,
  })
  .meta({ id: 'Payment' })

export const paymentFilters = {
  ...createdQuery,
  state: paymentSchema.shape.state.optional(),
  currency: currencySchema.optional(),
  reference: textSchema.optional(),
  order_id: idSchema('ord').optional(),
  invoice_id: idSchema('inv').optional(),
}

export const renderPayment: (row: PaymentRow) => z.input<typeof paymentSchema> = paymentView

const PATH = '/payments'
const common = { tag: 'Payments' } as const
const createPayment = route({
  ...common,
  method: 'POST',
  path: PATH,
  operationId: 'create_payment',
  audited: { bodyMember: 'invoice_id' },
  summary: 'Pay an invoice, exactly once per Idempotency-Key',
  scope: 'payments:write',
  rateClass: 'payments',
  deadlineMs: PAYMENT_DEADLINE_MS,
  body: newPayment,
  idempotencyKey: 'required',
  responses: {
    201: {
      description: 'The payment. A replay returns the same bytes.',
      schema: paymentSchema,
      headers: CREATED_HEADERS,
    },
    202: {
      description: 'The payment is stored durably and not yet decided. The operation shows its progress.',
      schema: operationSchema,
      headers: ['Location', 'Ledger-Position', 'Preference-Applied'],
    },
  },
  takesPreference: true,
  errors: [
    'resource_not_found',
    'payment_not_allowed',
    'payment_exceeds_due',
    'too_many_changes',
    'payment_reference_conflict',
    'idempotency_in_progress',
  ],
  handler: async call => {
    const paid = await pay(call.ledger, await paymentOf(call), call.context)
    call.ledger.world.crashPoint('mid_response')
    return replyTo(call, paid)
  },
  replay: async call => {
    const replayed = await replayPayment(call.ledger, await paymentOf(call), call.context)
    return replayed && replyTo(call, replayed)
  },
})

type CreateCall = LogCall<unknown, unknown, z.output<typeof newPayment>, 'required'>

const paymentOf = async (call: CreateCall): Promise<NewPayment> => {
  const { body, idempotency, leftMs, prefer } = call
  const reference = await referenceOf(call, body.reference)
  const request = { ...body, reference: reference?.digest ?? null }
  const idempotencyRecord = idempotencyRecordOf(idempotency, call, request)
  const id = idOfKey('pay', idempotency)
  const { respondAsync, waitMs: preferredMs = respondAsync ? 0 : leftMs } = prefer
  return {
    ...body,
    reference,
    amount: BigInt(body.amount),
    id,
    idempotencyRecord,
    waitMs: Math.min(preferredMs, waitMaxMs(leftMs)),
  }
}

const replyTo = (call: CreateCall, paid: CreationResult<PaymentRow>): Promise<Reply> | Reply => {
  if (paid.kind !== 'in_progress') return replyToCreation(call, paid, PATH, renderPayment)
  const headers = {
    Location: `/operations/${withPrefix('op', idOfKey('pay', call.idempotency))}`,
    'Ledger-Position': paid.position.toString(),
    ...appliedOf(call.prefer),
  }
  return { status: 202, body: renderPaymentOperation(paid.row), headers }
}

/** The header that names the granted wait, which may be shorter than the preferred one. */
const appliedOf = ({ respondAsync, waitMs }: Preference): Readonly<Record<string, string>> => {
  const applied = [
    ...(respondAsync ? ['respond-async'] : []),
    ...(waitMs === undefined ? [] : [`wait=${waitMs / SECOND_MS}`]),
  ]
  return applied.length === 0 ? {} : { 'Preference-Applied': applied.join(', ') }
}

const readPayment = route({
  ...common,
  method: 'GET',
  path: `${PATH}/{id}`,
  operationId: 'read_payment',
  summary: 'Read a payment',
  scope: 'payments:read',
  params: z.object({ id: idSchema('pay') }),
  query: asOfQuery,
  ...resourceById(paymentSchema, 'The payment.'),
  handler: call => readOne(call, paymentEntity, call.params.id, renderPayment),
})

const listPayments = route({
  ...common,
  method: 'GET',
  path: PATH,
  operationId: 'list_payments',
  summary: 'List payments, newest first',
  scope: 'payments:read',
  query: z.object({ ...pageQuery, ...paymentFilters }),
  ...listOf(paymentSchema),
  handler: async call => {
    const replaced = await columnFilters(call, call.query.reference)
    const page = (request: PageRequest) => paymentPage({ ...request, filters: { ...request.filters, ...replaced } })
    return readPage(call, { name: 'payments_v1', page, render: renderPayment })
  },
})

export const paymentRoutes: readonly AnyRoute[] = [createPayment, listPayments, readPayment]
