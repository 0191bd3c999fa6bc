import type { DataOf } from '../codec.ts'
import { decidedBy, type Decider, type Rejection, reject } from '../decider.ts'
import type { OrderId, PaymentId, RefundId } from '../ids.ts'
import { PersistentMap, PersistentSet } from '../persistentMap.ts'
import type { InvoiceEvent } from './events.ts'

/** The decider of invoices: approval, payments, refunds. */

export type RaiseInvoice = DataOf<InvoiceEvent, 'InvoiceRaised'> & { type: 'RaiseInvoice' }
export type ApproveInvoice = { type: 'ApproveInvoice'; approved_by: string; reason?: string }
export type VoidInvoice = { type: 'VoidInvoice'; reason: string | null }
/** `immediate` is paid with the same decision; `deferred` holds the amount until SettlePayment or ReleasePayment. */
export type PayInvoice = {
  type: 'PayInvoice'
  payment_id: PaymentId
  amount: bigint
  currency: string
  settlement: 'immediate' | 'deferred'
}
export type SettlePayment = { type: 'SettlePayment'; payment_id: PaymentId }
export type ReleasePayment = { type: 'ReleasePayment'; payment_id: PaymentId }
/** Sent after the payment's stream has granted the refund. */
export type ApplyRefund = DataOf<InvoiceEvent, 'RefundApplied'> & { type: 'ApplyRefund' }
export type InvoiceCommand =
  | RaiseInvoice
  | ApproveInvoice
  | VoidInvoice
  | PayInvoice
  | SettlePayment
  | ReleasePayment
  | ApplyRefund

export type InvoiceCode = 'resource_not_found' | 'invoice_state_conflict' | 'payment_state_conflict'

/** Reasons to refuse a payment. The invoice decides; the payment's stream records the answer for the payer. */
export type PaymentRefusal = DataOf<InvoiceEvent, 'PaymentRefused'>['code']

type Allocation =
  | { readonly amount: bigint; readonly status: 'reserved' | 'released' | 'applied' }
  | { readonly amount: bigint; readonly status: 'refused'; readonly code: PaymentRefusal }
type Amounts = {
  readonly orderId: OrderId
  readonly currency: string
  readonly dueDate: string
  readonly due: bigint
  readonly paid: bigint
  readonly pending: bigint
  /** Every payment that PayInvoice was sent for, so a retry is recognised. */
  readonly payments: PersistentMap<PaymentId, Allocation>
  readonly refunds: PersistentSet<RefundId>
}
export type InvoiceStatus = 'draft' | 'approved' | 'partially_paid' | 'paid' | 'voided'
/** draft ─▶ approved ─▶ partially_paid ─▶ paid. Draft or approved, with nothing paid or pending ─▶ voided. */
export type InvoiceState = { readonly status: 'none' } | (Amounts & { readonly status: InvoiceStatus })
type Raised = Exclude<InvoiceState, { status: 'none' }>

type Decision = readonly InvoiceEvent[] | Rejection<InvoiceCode>

export const stillDue = (invoice: Pick<Amounts, 'due' | 'paid' | 'pending'>): bigint =>
  invoice.due - invoice.paid - invoice.pending

const subjectOf = (invoice: Raised) => ({
  order_id: invoice.orderId,
  currency: invoice.currency,
  amount_due: invoice.due,
})

/**
 * A second RaiseInvoice of the same order, by a retry or by fulfilment, changes nothing. Of another order it is a bug:
 * that order would stay invoiced by an invoice that is not its own.
 */
const raiseInvoice = ({ type: _, ...terms }: RaiseInvoice, invoice: InvoiceState): Decision => {
  if (invoice.status === 'none') return [{ type: 'InvoiceRaised', data: terms }]
  return invoice.orderId === terms.order_id ? [] : reject('invoice_state_conflict', { order_id: invoice.orderId })
}

// Approve and void carry the version that the client read (If-Match), so a repetition after a lost response fails its
// precondition; a repetition with the present version is a new request, which the present state refuses.
const approveInvoice = ({ type: _, ...approval }: ApproveInvoice, invoice: InvoiceState): Decision => {
  if (invoice.status === 'none') return reject('resource_not_found')
  if (invoice.status !== 'draft') return reject('invoice_state_conflict', { state: invoice.status })
  return [{ type: 'InvoiceApproved', data: { ...subjectOf(invoice), due_date: invoice.dueDate, ...approval } }]
}

const voidInvoice = ({ reason }: VoidInvoice, invoice: InvoiceState): Decision => {
  if (invoice.status === 'none') return reject('resource_not_found')
  if (invoice.status !== 'draft' && invoice.status !== 'approved')
    return reject('invoice_state_conflict', { state: invoice.status })
  if (invoice.paid > 0n || invoice.pending > 0n)
    return reject('invoice_state_conflict', { state: invoice.status, amount_pending: invoice.pending })
  return [{ type: 'InvoiceVoided', data: { ...subjectOf(invoice), reason } }]
}

const applied = (invoice: Raised, payment_id: PaymentId, amount: bigint): InvoiceEvent[] => {
  const amount_paid = invoice.paid + amount
  const paidInFull = amount_paid === invoice.due
  return [
    { type: 'PaymentApplied', data: { payment_id, amount } },
    ...(paidInFull ? [{ type: 'InvoicePaid' as const, data: { ...subjectOf(invoice), amount_paid, payment_id } }] : []),
  ]
}

/**
 * The reason to refuse this payment, in order of precedence; undefined when the invoice accepts it. A paid invoice
 * needs no case of its own: nothing is due, so every amount exceeds it.
 */
export const refusalOf = (
  pay: Pick<PayInvoice, 'amount' | 'currency'>,
  invoice: Raised,
): PaymentRefusal | undefined => {
  if (invoice.status === 'draft' || invoice.status === 'voided') return 'payment_not_allowed'
  if (invoice.currency !== pay.currency) return 'payment_not_allowed'
  return pay.amount > stillDue(invoice) ? 'payment_exceeds_due' : undefined
}

/**
 * A refusal is an event too, because the payment exists already. If it were only a response, payment recovery could
 * send the command again after another payment has released its amount, and get the amount while the request records a
 * failure.
 */
const payInvoice = (pay: PayInvoice, invoice: InvoiceState): Decision => {
  if (invoice.status === 'none') return reject('resource_not_found')
  const { payment_id, amount } = pay
  if (invoice.payments.has(payment_id)) return []
  const code = refusalOf(pay, invoice)
  if (code) return [{ type: 'PaymentRefused', data: { payment_id, amount, code } }]
  if (pay.settlement === 'immediate') return applied(invoice, payment_id, amount)
  return [{ type: 'PaymentReserved', data: { payment_id, amount } }]
}

const settlePayment = ({ payment_id }: SettlePayment, invoice: InvoiceState): Decision => {
  if (invoice.status === 'none') return reject('resource_not_found')
  const allocation = invoice.payments.get(payment_id)
  if (allocation?.status === 'applied') return []
  if (allocation?.status !== 'reserved') return reject('payment_state_conflict')
  return applied(invoice, payment_id, allocation.amount)
}

const releasePayment = ({ payment_id }: ReleasePayment, invoice: InvoiceState): Decision => {
  if (invoice.status === 'none') return reject('resource_not_found')
  const allocation = invoice.payments.get(payment_id)
  if (allocation === undefined || allocation.status === 'released' || allocation.status === 'refused') return []
  if (allocation.status === 'applied') return reject('payment_state_conflict')
  return [{ type: 'PaymentReleased', data: { payment_id, amount: allocation.amount } }]
}

const applyRefund = ({ type: _, ...refund }: ApplyRefund, invoice: InvoiceState): Decision => {
  if (invoice.status === 'none') return reject('resource_not_found')
  return invoice.refunds.has(refund.refund_id) ? [] : [{ type: 'RefundApplied', data: refund }]
}

const withAllocation = (invoice: Raised, id: PaymentId, allocation: Allocation): Raised => ({
  ...invoice,
  payments: invoice.payments.with(id, allocation),
})

/** Adds the payment's amount to `pending` or `paid`, and subtracts it from `pending` if it was reserved. */
const moved = (
  invoice: Raised,
  { payment_id, amount }: DataOf<InvoiceEvent, 'PaymentApplied'>,
  to: 'reserved' | 'released' | 'applied',
): Raised => {
  const from = invoice.payments.get(payment_id)?.status
  return {
    ...withAllocation(invoice, payment_id, { amount, status: to }),
    pending: invoice.pending + (to === 'reserved' ? amount : 0n) - (from === 'reserved' ? amount : 0n),
    paid: invoice.paid + (to === 'applied' ? amount : 0n),
    status: to === 'applied' ? 'partially_paid' : invoice.status,
  }
}

const evolveRaised = (invoice: Raised, event: Exclude<InvoiceEvent, { type: 'InvoiceRaised' }>): Raised => {
  switch (event.type) {
    case 'InvoiceApproved':
      return { ...invoice, status: 'approved' }
    case 'InvoiceVoided':
      return { ...invoice, status: 'voided' }
    case 'PaymentReserved':
      return moved(invoice, event.data, 'reserved')
    case 'PaymentRefused': {
      const { payment_id, amount, code } = event.data
      return withAllocation(invoice, payment_id, { amount, status: 'refused', code })
    }
    case 'PaymentReleased':
      return moved(invoice, event.data, 'released')
    case 'PaymentApplied':
      return moved(invoice, event.data, 'applied')
    case 'RefundApplied':
      return { ...invoice, refunds: invoice.refunds.with(event.data.refund_id) }
    case 'InvoicePaid':
      return { ...invoice, status: 'paid' }
  }
}

const evolve = (invoice: InvoiceState, event: InvoiceEvent): InvoiceState => {
  if (event.type === 'InvoiceRaised') {
    const { order_id: orderId, currency, amount_due: due, due_date: dueDate } = event.data
    return {
      status: 'draft',
      orderId,
      currency,
      due,
      dueDate,
      paid: 0n,
      pending: 0n,
      payments: PersistentMap.of(),
      refunds: PersistentSet.of(),
    }
  }
  // `evolve` never refuses a stored event; before the invoice is raised it has no effect.
  return invoice.status === 'none' ? invoice : evolveRaised(invoice, event)
}

// The payment exists already when PayInvoice is sent, and the refund when ApplyRefund is, so their initiation checks the
// length of the invoice's stream.
export const invoiceDecider: Decider<InvoiceState, InvoiceCommand, InvoiceEvent, InvoiceCode> = {
  initial: { status: 'none' },
  ...decidedBy<InvoiceCommand, InvoiceState, Decision>({
    RaiseInvoice: ['unlimited', raiseInvoice],
    ApproveInvoice: ['unlimited', approveInvoice],
    VoidInvoice: ['unlimited', voidInvoice],
    PayInvoice: ['unlimited', payInvoice],
    SettlePayment: ['unlimited', settlePayment],
    ReleasePayment: ['unlimited', releasePayment],
    ApplyRefund: ['unlimited', applyRefund],
  }),
  evolve,
}
