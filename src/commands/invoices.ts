import type { InvoiceRow } from '../../projections/invoices/projection.ts'
import type { Annotations, Claim } from '../../streams/claim.ts'
import { reject } from '../../streams/decider.ts'
import type { InvoiceId, OrderId } from '../../streams/ids.ts'
import type { InvoiceTerms } from '../../streams/order/index.ts'
import { Unavailable } from '../ports.ts'
import { type Created, objectionTo, replay } from './creation.ts'
import { invoiceEntity, orderEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './handle.ts'

export type NewInvoice = {
  readonly id: InvoiceId
  readonly order_id: OrderId
  /** RFC 3339 full-date. */
  readonly due_date: string
  readonly metadata: Annotations
  readonly claim: Claim | null
}

/**
 * Raises an invoice from an open order. The order's stream decides which invoice it gets and keeps its terms; the invoice
 * is then raised from those terms, by this request, by its retry, or by the fulfilment process after a crash.
 */
export const raise = async (ledger: Ledger, invoice: NewInvoice, context: Context): Promise<Created<InvoiceRow>> => {
  const { id, order_id, due_date, metadata, claim } = invoice
  const before = claim && (await replay(ledger, invoiceEntity, id, claim))
  if (before) return before
  const order = await ledger.loader.load(orderEntity, order_id)
  if (order.row?.tenant_id !== context.tenant) return { kind: 'refused', rejection: reject('resource_not_found') }
  const command = { type: 'InvoiceOrder' as const, invoice_id: id, due_date, metadata, claim }
  const handled = await handle(ledger, orderEntity, order_id, { command, context })
  if ('stale' in handled) return { kind: 'refused', rejection: reject('concurrent_modification') }
  if (!handled.ok) return { kind: 'refused', rejection: handled }
  if (!('invoice' in handled.state)) throw new Error(`${order_id} took an invoice and does not know it.`)
  const terms = handled.state.invoice
  // The order had taken this invoice before, for a request that ended between the two streams.
  const objection = claim && objectionTo(id, claim, terms.claim ?? undefined, ledger.world.now())
  return objection ?? afterEffect(() => raiseFromTerms(ledger, order_id, terms, context))
}

/** The order has changed already, so a part that does not answer now leaves more than nothing behind. */
const afterEffect = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw error instanceof Unavailable ? new Unavailable(error.part, 'unknown', error.cause) : error
  }
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
