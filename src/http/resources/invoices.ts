import { z } from 'zod'
import type { InvoiceRow } from '../../../projections/invoices/projection.ts'
import { invoicePage, invoiceResource } from '../../../projections/invoices/queries.ts'
import { type InvoiceId, idSchema } from '../../../streams/ids.ts'
import { invoiceEntity } from '../../commands/entities.ts'
import { handle } from '../../commands/commandHandler.ts'
import { replay } from '../../commands/idempotency/creation.ts'
import { randomId } from '../../lib/identifiers.ts'
import { idOfKey } from '../../commands/idempotency/record.ts'
import { raise } from '../../commands/invoices.ts'
import type { JsonObject } from '../../ports.ts'
import { readPage } from './collection.ts'
import { authorizeApproval } from '../../identity/approvalPolicy.ts'
import { idempotencyRecordIfKeyed, idempotencyRecordOf } from '../request/idempotencyKey.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { replyToCommand, replyToCreation, ifMatchOf, readOne, visibleRow } from './commonReplies.ts'
import { type AnyRoute, route } from '../route.ts'
import type { Call } from '../services.ts'
import {
  CREATED_HEADERS,
  amountSchema,
  asOfQuery,
  changedResource,
  currencySchema,
  exponentSchema,
  metadataSchema,
  dateSchema,
  resourceShape,
  sumSchema,
  textSchema,
  timeSchema,
  resourceById,
} from './commonSchemas.ts'
import { createdQuery, pageQuery, listOf } from './paging.ts'
import { DAY_MS } from '../../lib/time.ts'

const TERM_DAYS = 30

const newInvoice = z
  .strictObject({
    order_id: idSchema('ord'),
    due_date: dateSchema.optional().meta({
      description: `The date by which the invoice is due (RFC 3339 full-date); ${TERM_DAYS} days from now by default.`,
    }),
    metadata: metadataSchema.default({}),
  })
  .meta({ id: 'NewInvoice' })

export const invoiceSchema = z
  .object({
    id: idSchema('inv'),
    state: z.enum(['draft', 'approved', 'partially_paid', 'paid', 'voided']),
    ...resourceShape,
    order_id: idSchema('ord'),
    currency: currencySchema,
    exponent: exponentSchema,
    total_amount: amountSchema,
    amount_paid: sumSchema,
    amount_pending: sumSchema,
    amount_outstanding: sumSchema.meta({
      description:
        'The amount that may still be paid: total_amount minus amount_paid and amount_pending; 0 after it was voided.',
    }),
    amount_refunded: sumSchema,
    due_date: z.iso.date(),
    approved_by: z.string().nullable(),
    approved_at: timeSchema.nullable(),
    paid_at: timeSchema.nullable(),
  })
  .meta({ id: 'Invoice' })

export const invoiceFilters = {
  ...createdQuery,
  state: invoiceSchema.shape.state.optional(),
  currency: currencySchema.optional(),
  order_id: idSchema('ord').optional(),
}

const render: (row: InvoiceRow) => z.input<typeof invoiceSchema> = invoiceResource

const byId = z.object({ id: idSchema('inv') })
const PATH = '/invoices'
const common = { tag: 'Invoices' } as const
const changed = changedResource(invoiceSchema, 'The invoice.')

const raiseInvoice = route({
  ...common,
  method: 'POST',
  path: PATH,
  operationId: 'raise_invoice',
  summary: 'Raise an invoice from an open order',
  scope: 'invoices:write',
  body: newInvoice,
  idempotencyKey: 'honoured',
  responses: { 201: { ...changed, headers: CREATED_HEADERS } },
  errors: ['resource_not_found', 'order_state_conflict', 'order_has_invoices', 'too_many_changes'],
  handler: async call => {
    const { body, ledger, context, idempotency } = call
    const id = idempotency ? idOfKey('inv', idempotency) : randomId('inv', ledger.world)
    const idempotencyRecord = idempotencyRecordIfKeyed(call, body as JsonObject)
    const due_date = body.due_date ?? new Date(ledger.world.now() + TERM_DAYS * DAY_MS).toISOString().slice(0, 10)
    const { order_id, metadata } = body
    const raised = await raise(ledger, { id, idempotencyRecord, due_date, order_id, metadata }, context)
    return replyToCreation(call, raised, PATH, render)
  },
  replay: async call => {
    const { body, ledger, idempotency } = call
    const record = idempotencyRecordOf(idempotency, call, body as JsonObject)
    const replayed = await replay(ledger, invoiceEntity, idOfKey('inv', idempotency), record)
    return replayed && replyToCreation(call, replayed, PATH, render)
  },
})

const readInvoice = route({
  ...common,
  method: 'GET',
  path: `${PATH}/{id}`,
  operationId: 'read_invoice',
  summary: 'Read an invoice',
  scope: 'invoices:read',
  params: byId,
  query: asOfQuery,
  ...resourceById(invoiceSchema, 'The invoice.'),
  handler: call => readOne(call, invoiceEntity, call.params.id, render),
})

const listInvoices = route({
  ...common,
  method: 'GET',
  path: PATH,
  operationId: 'list_invoices',
  summary: 'List invoices, newest first',
  scope: 'invoices:read',
  query: z.object({ ...pageQuery, ...invoiceFilters }),
  ...listOf(invoiceSchema),
  handler: call => readPage(call, { name: 'invoices_v1', page: invoicePage, render }),
})

/** Checks the approval policy of the tenant. Throws Problem; 403 comes before 412. */
const checkApprovalPolicy = async (call: Call<{ id: InvoiceId }, unknown, unknown>): Promise<void> => {
  const { tenant_id, currency, amount_due } = await visibleRow(call, invoiceEntity, call.params.id)
  if (!call.needsFourEyes(tenant_id, currency, amount_due)) return
  // The row has the subject of the creator alone.
  const raised = await call.ledger.aggregates.first(invoiceEntity, call.params.id)
  if (raised === undefined) throw new Problem('resource_not_found')
  const decision = authorizeApproval(call.principal, raised.metadata)
  if ('refused' in decision)
    throw new Problem(decision.refused, {
      detail:
        'An invoice of this amount must be approved by someone other than its creator, and not through the client that created it.',
    })
}

const approveInvoice = route({
  ...common,
  method: 'POST',
  path: `${PATH}/{id}:approve`,
  operationId: 'approve_invoice',
  audited: 'path',
  summary: 'Approve a draft invoice for payment',
  scope: 'invoice:approve',
  params: byId,
  body: z
    .strictObject({
      reason: textSchema.optional().meta({
        description: 'Why the invoice is approved, for auditors: shown by its history and by the audit record.',
      }),
    })
    .default({}),
  ifMatch: 'required',
  responses: { 200: changed },
  errors: ['invoice_state_conflict', 'policy_denied'],
  handler: async call => {
    await checkApprovalPolicy(call)
    const { reason } = call.body
    const command = {
      ...{ type: 'ApproveInvoice' as const, approved_by: call.principal.subject },
      ...(reason !== undefined && { reason }),
    }
    const request = { command, context: call.context, ifMatch: ifMatchOf(call) }
    return replyToCommand(call, await handle(call.ledger, invoiceEntity, call.params.id, request), render)
  },
})

const voidInvoice = route({
  ...common,
  method: 'POST',
  path: `${PATH}/{id}:void`,
  operationId: 'void_invoice',
  audited: 'path',
  summary: 'Void an invoice that has no payments',
  scope: 'invoices:write',
  params: byId,
  body: z.strictObject({ reason: textSchema }),
  ifMatch: 'required',
  responses: { 200: changed },
  errors: ['invoice_state_conflict'],
  handler: async call => {
    await visibleRow(call, invoiceEntity, call.params.id)
    const command = { type: 'VoidInvoice' as const, reason: call.body.reason }
    const request = { command, context: call.context, ifMatch: ifMatchOf(call) }
    return replyToCommand(call, await handle(call.ledger, invoiceEntity, call.params.id, request), render)
  },
})

export const invoiceRoutes: readonly AnyRoute[] = [raiseInvoice, listInvoices, readInvoice, approveInvoice, voidInvoice]
