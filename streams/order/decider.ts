import { type Annotations, ANNOTATIONS_MAX } from '../idempotencyRecord.ts'
import type { DataOf } from '../codec.ts'
import { decidedBy, type Decider, type Rejection, reject } from '../decider.ts'
import type { InvoiceId } from '../ids.ts'
import { mergePatch } from '../mergePatch.ts'
import { PersistentMap, PersistentSet } from '../persistentMap.ts'
import type { InvoiceTerms, Line, OrderEvent } from './events.ts'

/** The decider of orders: changes, invoicing, cancellation, deletion. */

export type CreateOrder = Omit<DataOf<OrderEvent, 'OrderCreated'>, 'total_amount'> & { type: 'CreateOrder' }
/** `metadata`: a JSON merge patch. */
export type ChangeOrder = {
  type: 'ChangeOrder'
  customer_reference?: string | null
  description?: string | null
  metadata?: Readonly<Record<string, string | null>> | null
  lines?: readonly Line[]
}
export type InvoiceOrder = Omit<InvoiceTerms, 'amount_due' | 'currency'> & { type: 'InvoiceOrder' }
export type ReopenOrder = { type: 'ReopenOrder'; invoice_id: InvoiceId }
export type CompleteOrder = { type: 'CompleteOrder'; invoice_id: InvoiceId }
export type CancelOrder = { type: 'CancelOrder'; reason: string | null }
export type DeleteOrder = { type: 'DeleteOrder' }
export type OrderCommand =
  | CreateOrder
  | ChangeOrder
  | InvoiceOrder
  | ReopenOrder
  | CompleteOrder
  | CancelOrder
  | DeleteOrder

/** `validation_failed`: the metadata would have too many members. */
export type OrderCode =
  | 'resource_not_found'
  | 'validation_failed'
  | 'order_state_conflict'
  | 'order_has_invoices'
  | 'concurrent_modification'

export type InvoiceRefusal = DataOf<OrderEvent, 'OrderInvoiceRefused'>['code']

type Terms = Omit<DataOf<OrderEvent, 'OrderCreated'>, 'total_amount' | 'claim'> & {
  readonly total: bigint
  /** Invoices that were refused under a key, with the reasons. */
  readonly refused: PersistentMap<InvoiceId, InvoiceRefusal>
  /** Invoices that the order had, and that were voided. */
  readonly voided: PersistentSet<InvoiceId>
}
/**
 * open ─▶ invoiced ─▶ completed: one live invoice at a time; a voided one reopens the order.
 * open ─▶ cancelled. Any order without a live invoice ─▶ deleted, which is final.
 */
export type OrderState =
  | { readonly status: 'none' }
  | (Terms & { readonly status: 'open' | 'cancelled' | 'deleted' })
  | (Terms & { readonly status: 'invoiced' | 'completed'; readonly invoice: InvoiceTerms })

type Created = Exclude<OrderState, { status: 'none' }>

type Decision = readonly OrderEvent[] | Rejection<OrderCode>

export const totalOf = (lines: readonly Line[]): bigint =>
  lines.reduce((sum, line) => sum + BigInt(line.quantity) * line.unit_amount, 0n)

const createOrder = ({ type: _, ...order }: CreateOrder, state: OrderState): Decision => {
  if (state.status !== 'none') return reject('concurrent_modification')
  return [{ type: 'OrderCreated', data: { ...order, total_amount: totalOf(order.lines) } }]
}

// Both texts are made by the same schema with the same order of members, so equal text means equal content.
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? inner.toString() : inner))
const differs = (value: unknown, current: unknown): boolean => value !== undefined && textOf(value) !== textOf(current)

const patchedMetadata = (current: Annotations, patch: ChangeOrder['metadata']): Annotations => {
  if (patch === undefined) return current
  return patch === null ? {} : (mergePatch(current, patch) as Annotations)
}

const changeOrder = (change: ChangeOrder, state: OrderState): Decision => {
  if (state.status === 'none' || state.status === 'deleted') return reject('resource_not_found')
  const metadata = patchedMetadata(state.metadata, change.metadata)
  if (change.metadata && Object.keys(metadata).length > ANNOTATIONS_MAX) return reject('validation_failed')
  const changed = {
    ...(differs(change.customer_reference, state.customer_reference)
      ? { customer_reference: change.customer_reference }
      : {}),
    ...(differs(change.description, state.description) ? { description: change.description } : {}),
    ...(differs(metadata, state.metadata) ? { metadata } : {}),
    ...(change.lines && differs(change.lines, state.lines)
      ? { lines: [...change.lines], total_amount: totalOf(change.lines) }
      : {}),
  }
  if (Object.keys(changed).length === 0) return []
  if (state.status === 'cancelled') return reject('order_state_conflict', { state: state.status })
  if (changed.lines && state.status !== 'open') return reject('order_state_conflict', { state: state.status })
  return [{ type: 'OrderChanged', data: changed }]
}

/** The reason to refuse an invoice, in order of precedence; undefined when the order accepts one. */
const refusalOf = (order: Created): Rejection<OrderCode> | undefined => {
  if (order.status === 'deleted') return reject('resource_not_found')
  if (order.status === 'invoiced') return reject('order_has_invoices', { invoice_id: order.invoice.invoice_id })
  return order.status === 'open' ? undefined : reject('order_state_conflict', { state: order.status })
}

/**
 * With an Idempotency-Key, a refusal is an event too, because the key is bound already: if it were only a response, the
 * same request could succeed once the order is open again. A deleted order is a conflict for such a request.
 */
const invoiceOrder = ({ type: _, ...terms }: InvoiceOrder, state: OrderState): Decision => {
  if (state.status === 'none') return reject('resource_not_found')
  const { invoice_id, claim } = terms
  if ('invoice' in state && state.invoice.invoice_id === invoice_id) return []
  // A late repetition of a request that was executed before: a voided invoice does not come back.
  if (state.refused.has(invoice_id) || state.voided.has(invoice_id)) return []
  const refusal = refusalOf(state)
  if (refusal === undefined)
    return [{ type: 'OrderInvoiced', data: { ...terms, amount_due: state.total, currency: state.currency } }]
  if (claim === null) return refusal
  const code = refusal.rejected === 'order_has_invoices' ? refusal.rejected : 'order_state_conflict'
  return [{ type: 'OrderInvoiceRefused', data: { invoice_id, code } }]
}

const reopenOrder = ({ invoice_id }: ReopenOrder, state: OrderState): Decision => {
  if (state.status === 'none') return reject('resource_not_found')
  if (state.status !== 'invoiced' || state.invoice.invoice_id !== invoice_id) return []
  return [{ type: 'OrderReopened', data: { invoice_id } }]
}

const completeOrder = ({ invoice_id }: CompleteOrder, state: OrderState): Decision => {
  if (state.status === 'none') return reject('resource_not_found')
  if (state.status !== 'invoiced' || state.invoice.invoice_id !== invoice_id) return []
  return [{ type: 'OrderCompleted', data: { invoice_id } }]
}

const cancelOrder = ({ reason }: CancelOrder, state: OrderState): Decision => {
  if (state.status === 'none' || state.status === 'deleted') return reject('resource_not_found')
  if (state.status === 'invoiced') return reject('order_has_invoices', { invoice_id: state.invoice.invoice_id })
  if (state.status !== 'open') return reject('order_state_conflict', { state: state.status })
  return [{ type: 'OrderCancelled', data: { reason, currency: state.currency, total_amount: state.total } }]
}

const deleteOrder = (_: DeleteOrder, state: OrderState): Decision => {
  if (state.status === 'none' || state.status === 'deleted') return reject('resource_not_found')
  if ('invoice' in state) return reject('order_has_invoices', { invoice_id: state.invoice.invoice_id })
  return [{ type: 'OrderDeleted', data: {} }]
}

const termsOf = (order: Created): Terms => {
  const { currency, lines, total, customer_reference, description, metadata, refused, voided } = order
  return { currency, lines, total, customer_reference, description, metadata, refused, voided }
}

const withChanges = (order: Created, { total_amount, ...changed }: DataOf<OrderEvent, 'OrderChanged'>): Created => {
  const present = Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined))
  return { ...order, ...present, total: total_amount ?? order.total }
}

const evolveCreated = (order: Created, event: Exclude<OrderEvent, { type: 'OrderCreated' }>): Created => {
  switch (event.type) {
    case 'OrderChanged':
      return withChanges(order, event.data)
    case 'OrderInvoiced':
      return { ...termsOf(order), status: 'invoiced', invoice: event.data }
    case 'OrderInvoiceRefused':
      return { ...order, refused: order.refused.with(event.data.invoice_id, event.data.code) }
    case 'OrderReopened':
      return { ...termsOf(order), status: 'open', voided: order.voided.with(event.data.invoice_id) }
    case 'OrderCompleted':
      return order.status === 'invoiced' ? { ...order, status: 'completed' } : order
    case 'OrderCancelled':
      return { ...termsOf(order), status: 'cancelled' }
    case 'OrderDeleted':
      return { ...termsOf(order), status: 'deleted' }
  }
}

const evolve = (order: OrderState, event: OrderEvent): OrderState => {
  if (event.type === 'OrderCreated') {
    const { total_amount: total, claim: _, ...terms } = event.data
    return { ...terms, total, status: 'open', refused: PersistentMap.of(), voided: PersistentSet.of() }
  }
  // `evolve` never refuses a stored event; before the order is created it has no effect.
  return order.status === 'none' ? order : evolveCreated(order, event)
}

export const orderDecider: Decider<OrderState, OrderCommand, OrderEvent, OrderCode> = {
  initial: { status: 'none' },
  ...decidedBy<OrderCommand, OrderState, Decision>({
    CreateOrder: ['unlimited', createOrder],
    ChangeOrder: ['limited', changeOrder],
    InvoiceOrder: ['reserved', invoiceOrder],
    ReopenOrder: ['unlimited', reopenOrder],
    CompleteOrder: ['unlimited', completeOrder],
    CancelOrder: ['unlimited', cancelOrder],
    DeleteOrder: ['unlimited', deleteOrder],
  }),
  evolve,
}
