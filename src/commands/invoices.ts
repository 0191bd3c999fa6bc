import type { InvoiceRow } from '../../projections/invoices/projection.ts'
import type { Annotations, Claim } from '../../streams/claim.ts'
import { isRejection, reject, type Rejection } from '../../streams/decider.ts'
import type { InvoiceId, OrderId } from '../../streams/ids.ts'
import type { InvoiceOrder, InvoiceTerms } from '../../streams/order/index.ts'
import { type Created, replay } from './creation.ts'
import { invoiceEntity, orderEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './handle.ts'
import { bindKey, objectionToKey } from './keyBindings.ts'

export type NewInvoice = {
  readonly id: InvoiceId
  readonly order_id: OrderId
  /** RFC 3339 full-date. */
  readonly due_date: string
  readonly metadata: Annotations
  readonly claim: Claim | null
}

/**
 * Raises an invoice from an open order, in steps that a retry may repeat:
 *
 *   key          binding stream, where there is a key. Two requests with one key meet here, whatever orders they name.
 *   decision     order stream. Decides which invoice the order gets, and keeps its terms.
 *   consequence  invoice stream. Raised from those terms, by this request, its retry, or fulfilment after a crash.
 */
export const raise = async (ledger: Ledger, invoice: NewInvoice, context: Context): Promise<Created<InvoiceRow>> => {
  const { id, order_id, due_date, metadata, claim } = invoice
  const before = claim && (await replay(ledger, invoiceEntity, id, claim))
  if (before) return before
  const command = { type: 'InvoiceOrder' as const, invoice_id: id, due_date, metadata, claim }
  const refusal = await refusalBefore(ledger, order_id, command, context.tenant)
  const key = claim && { derived: id, about: id, claim }
  const objection = key && (await (refusal ? objectionToKey(ledger, key) : bindKey(ledger, key, context)))
  if (objection) return objection
  if (refusal) return { kind: 'refused', rejection: refusal }
  const handled = await handle(ledger, orderEntity, order_id, { command, context })
  if ('stale' in handled) throw new Error('An order was invoiced on condition, though none was made.')
  if (!handled.ok) return { kind: 'refused', rejection: handled }
  if (!('invoice' in handled.state)) throw new Error(`${order_id} took an invoice and does not know it.`)
  const raised = await raiseFromTerms(ledger, order_id, handled.state.invoice, context)
  // Raised by another driver of this request, and changed since: a retry is told what the first request was told.
  const isFirst = 'row' in raised && raised.row.revision === 0n
  return (claim && !isFirst && (await replay(ledger, invoiceEntity, id, claim))) || raised
}

/** Everything that can be refused before the key is bound. The order's stream decides in the end. */
const refusalBefore = async (
  { loader }: Ledger,
  id: OrderId,
  command: InvoiceOrder,
  tenant: string,
): Promise<Rejection | undefined> => {
  const { row, state } = await loader.load(orderEntity, id)
  if (row?.tenant_id !== tenant) return reject('resource_not_found')
  const decided = orderEntity.aggregate.decider.decide(command, state)
  return isRejection(decided) ? decided : undefined
}

/** The second half: from the order's terms alone. Raising what is raised already changes nothing. */
export const raiseFromTerms = async (
  ledger: Ledger,
  order_id: OrderId,
  { invoice_id, amount_due, currency, due_date, metadata, claim }: InvoiceTerms,
  context: Context,
): Promise<Created<InvoiceRow>> => {
  const command = { type: 'RaiseInvoice' as const, order_id, amount_due, currency, due_date, metadata, claim }
  const raised = await handle(ledger, invoiceEntity, invoice_id, { command, context, isNew: true })
  if (!raised.ok || !raised.row) throw new Error(`${invoice_id} could not be raised from ${order_id}.`)
  return { kind: 'created', row: raised.row, position: raised.position }
}
