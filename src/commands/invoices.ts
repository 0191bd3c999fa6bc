import type { InvoiceRow } from '../../projections/invoices/projection.ts'
import type { Annotations, IdempotencyRecord } from '../../streams/idempotencyRecord.ts'
import { isRejection, reject, type Rejection } from '../../streams/decider.ts'
import type { InvoiceId, OrderId } from '../../streams/ids.ts'
import type { InvoiceOrder, InvoiceTerms, OrderState } from '../../streams/order/index.ts'
import { type CreationResult, replay, rowUntil } from './idempotency/creation.ts'
import { invoiceEntity, type KindOf, orderEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './commandHandler.ts'
import { recordKey, recordedKeyConflict } from './idempotency/conflicts.ts'
import { decisionOn } from './streamGrowth.ts'
import type { Loaded } from './aggregateRepository.ts'

export type NewInvoice = {
  readonly id: InvoiceId
  readonly order_id: OrderId
  /** RFC 3339 full-date. */
  readonly due_date: string
  readonly metadata: Annotations
  readonly idempotencyRecord: IdempotencyRecord | null
}

/**
 * Raises an invoice from an open order, in steps that a retry may repeat:
 *
 *   key          key binding stream, for requests with a key. Decides between two requests with one key, also for two orders.
 *   decision     order stream. Decides which invoice the order gets, and keeps its terms.
 *   consequence  invoice stream. Raised from those terms, by this request, its retry, or fulfilment after a crash.
 */
export const raise = async (
  ledger: Ledger,
  invoice: NewInvoice,
  context: Context,
): Promise<CreationResult<InvoiceRow>> => {
  const { id, order_id, due_date, metadata, idempotencyRecord } = invoice
  const replayed = idempotencyRecord && (await replay(ledger, invoiceEntity, id, idempotencyRecord))
  if (replayed) return replayed
  const command = { type: 'InvoiceOrder' as const, invoice_id: id, due_date, metadata, claim: idempotencyRecord }
  const order = await ledger.aggregates.loadOwn(orderEntity, order_id, context.tenant)
  const refusal = refusalBefore(ledger, order, command)
  const key = idempotencyRecord && { idFromKey: id, resourceId: id, idempotencyRecord }
  const conflict = key
    ? await (refusal ? recordedKeyConflict(ledger, key) : recordKey(ledger, key, context))
    : 'unbound'
  if (refusal && conflict === 'unbound') return { kind: 'refused', rejection: refusal }
  if (conflict && conflict !== 'unbound') return conflict
  // An earlier attempt bound the key and ended before the order decided; the order's refusal is recorded now, as that
  // attempt would have done.
  if (order && hasRefused(order.state, id)) return recordedRefusal(ledger, order_id, id, context)
  const handled = await handle(ledger, orderEntity, order_id, { command, context })
  if ('stale' in handled) throw new Error('The order was stale, though the command had no condition.')
  if (!handled.ok) return { kind: 'refused', rejection: handled }
  if (hasRefused(handled.state, id)) return recordedRefusal(ledger, order_id, id, context)
  const { state } = handled
  if (!('invoice' in state) || state.invoice.invoice_id !== id) return voidedSince(ledger, id, idempotencyRecord)
  const raised = await raiseFromTerms(ledger, order_id, state.invoice, context)
  // Another attempt raised the invoice, and it may have changed since; a retry gets the answer of the first request.
  const isFirst = 'row' in raised && raised.row.revision === 0n
  const firstAnswer = idempotencyRecord && !isFirst && (await replay(ledger, invoiceEntity, id, idempotencyRecord))
  return firstAnswer || raised
}

/** Another attempt of this request raised the invoice, which was voided since: the answer is that of this attempt. */
const voidedSince = async (
  ledger: Ledger,
  id: InvoiceId,
  idempotencyRecord: IdempotencyRecord | null,
): Promise<CreationResult<InvoiceRow>> => {
  const replayed = idempotencyRecord && (await replay(ledger, invoiceEntity, id, idempotencyRecord))
  if (replayed) return replayed
  const first = await rowUntil(invoiceEntity, ledger.aggregates.events(invoiceEntity, id, { limit: 1 }))
  if (first === undefined) throw new Error(`An order had ${id}, which was never raised.`)
  return { kind: 'created', row: first.row, position: first.last.position }
}

const hasRefused = (order: OrderState, id: InvoiceId): boolean => order.status !== 'none' && order.refused.has(id)

/** The refusal that the order's stream recorded under this key, the same for every retry. */
const recordedRefusal = async (
  { aggregates }: Ledger,
  order_id: OrderId,
  id: InvoiceId,
  { correlationId }: Context,
): Promise<CreationResult<InvoiceRow>> => {
  for await (const { event, metadata } of aggregates.events(orderEntity, order_id)) {
    if (event.type !== 'OrderInvoiceRefused' || event.data.invoice_id !== id) continue
    const isReplay = metadata.correlationId !== correlationId
    const rejection = reject(event.data.code)
    return {
      kind: 'refused',
      rejection,
      firstCorrelationId: metadata.correlationId,
      ...(isReplay && { replayed: true }),
    }
  }
  throw new Error(`${order_id} has refused ${id} and has no record of it.`)
}

/** Checks that refuse before the key is bound. The order's stream makes the final decision. */
const refusalBefore = (
  ledger: Ledger,
  order: Loaded<KindOf<typeof orderEntity>> | undefined,
  command: InvoiceOrder,
): Rejection | undefined => {
  if (order === undefined) return reject('resource_not_found')
  // Without an idempotency record the order refuses with a rejection instead of an event: this refusal is not
  // recorded.
  const decided = decisionOn(ledger, orderEntity, order, { ...command, claim: null })
  return isRejection(decided) ? decided : undefined
}

/** Raises the invoice from the order's terms. Repeating it changes nothing. */
export const raiseFromTerms = async (
  ledger: Ledger,
  order_id: OrderId,
  { invoice_id, amount_due, currency, due_date, metadata, claim }: InvoiceTerms,
  context: Context,
): Promise<CreationResult<InvoiceRow>> => {
  const command = { type: 'RaiseInvoice' as const, order_id, amount_due, currency, due_date, metadata, claim }
  const raised = await handle(ledger, invoiceEntity, invoice_id, { command, context, load: 'assume_empty' })
  if (!raised.ok || !raised.row) throw new Error(`${invoice_id} could not be raised from ${order_id}.`)
  return { kind: 'created', row: raised.row, position: raised.position }
}
