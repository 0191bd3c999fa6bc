import type { DataOf } from '../codec.ts'
import { decidedBy, type Decider, type Rejection, reject } from '../decider.ts'
import type { PaymentId, ReferenceId, RefundId } from '../ids.ts'
import { PersistentMap } from '../persistentMap.ts'
import type { PaymentEvent } from './events.ts'

/** The decider of payments: outcome, settlement, refunds. */

export type PaymentTerms = DataOf<PaymentEvent, 'PaymentAccepted'>

export type InitiatePayment = DataOf<PaymentEvent, 'PaymentInitiated'> & { type: 'InitiatePayment' }
/** The invoice accepted the amount: a deferred payment becomes accepted, an immediate one succeeded. */
export type ConfirmPayment = { type: 'ConfirmPayment' }
export type RefusalCode = 'payment_not_allowed' | 'payment_exceeds_due' | 'payment_reference_conflict'
/**
 * The invoice or the reference refused the payment. Sent only by the drivers of the payment: its request, and payment
 * recovery. `held_by`: the payment that has the reference, if that is the reason.
 */
export type RefusePayment = { type: 'RefusePayment'; code: RefusalCode; held_by: PaymentId | null }
/** Commands of a caller who may settle payments, possible only for an accepted deferred payment. */
export type SettlePayment = { type: 'SettlePayment' }
export type FailPayment = { type: 'FailPayment'; code: string }
/** Sent for a refund whose stream exists. `amount`: null for all that is left. */
export type RefundPayment = { type: 'RefundPayment'; refund_id: RefundId; amount: bigint | null; reason: string }
export type PaymentCommand =
  | InitiatePayment
  | ConfirmPayment
  | RefusePayment
  | SettlePayment
  | FailPayment
  | RefundPayment

export type PaymentCode = 'resource_not_found' | 'payment_state_conflict' | 'concurrent_modification'

/** The outcome of each refund: its amount, or null when it was refused. */
type Refunds = PersistentMap<RefundId, bigint | null>

/**
 * initiated ─▶ succeeded (immediate) or accepted (deferred), as the invoice decides; or refused, by it or the reference.
 * accepted ─▶ succeeded or failed, as the settler decides. succeeded is refunded in parts, until nothing is left.
 *
 * While a payment is initiated, only its drivers may send commands: the invoice may have accepted the amount already,
 * so that a settler's verdict could contradict it. Clients see initiated and accepted as pending, refused and failed as
 * failed.
 */
export type PaymentState =
  | { readonly status: 'none' }
  | { readonly status: 'initiated'; readonly terms: PaymentTerms; readonly referenceStream: ReferenceId | null }
  | { readonly status: 'accepted'; readonly terms: PaymentTerms }
  | { readonly status: 'succeeded'; readonly terms: PaymentTerms; readonly refunded: bigint; readonly refunds: Refunds }
  | { readonly status: 'refused' | 'failed'; readonly terms: PaymentTerms; readonly code: string }

type Decision = readonly PaymentEvent[] | Rejection<PaymentCode>

/** The states as clients see them. */
const SHOWN = {
  none: 'none',
  initiated: 'pending',
  accepted: 'pending',
  succeeded: 'succeeded',
  refused: 'failed',
  failed: 'failed',
} as const satisfies Record<PaymentState['status'], string>

const conflict = ({ status }: PaymentState): Rejection<PaymentCode> =>
  reject('payment_state_conflict', { state: SHOWN[status] })

const initiate = ({ type: _, ...terms }: InitiatePayment, payment: PaymentState): Decision =>
  payment.status === 'none' ? [{ type: 'PaymentInitiated', data: terms }] : reject('concurrent_modification')

const confirm = (_: ConfirmPayment, payment: PaymentState): Decision => {
  if (payment.status === 'none') return reject('resource_not_found')
  if (payment.status === 'refused') return conflict(payment)
  if (payment.status !== 'initiated') return []
  const type = payment.terms.settlement === 'immediate' ? 'PaymentSucceeded' : 'PaymentAccepted'
  return [{ type, data: payment.terms }]
}

/** Settling a settled payment changes nothing, because the settler may repeat after a lost answer. */
const settle = (_: SettlePayment, payment: PaymentState): Decision => {
  if (payment.status === 'none') return reject('resource_not_found')
  if (payment.status === 'succeeded' && payment.terms.settlement === 'deferred') return []
  if (payment.status !== 'accepted') return conflict(payment)
  return [{ type: 'PaymentSucceeded', data: payment.terms }]
}

/** The amount that can still be refunded; zero unless the payment has succeeded. */
export const refundable = (payment: PaymentState): bigint =>
  payment.status === 'succeeded' ? payment.terms.amount - payment.refunded : 0n

/** The amount that a refund gives back, the whole rest when `amount` is null; undefined when the payment refuses it. */
export const grantedRefund = (payment: PaymentState, amount: bigint | null): bigint | undefined => {
  const left = refundable(payment)
  const granted = amount ?? left
  return granted === 0n || granted > left ? undefined : granted
}

const refund = ({ refund_id, amount, reason }: RefundPayment, payment: PaymentState): Decision => {
  if (payment.status === 'none') return reject('resource_not_found')
  // A refund is initiated only after the payment has succeeded, and a succeeded payment stays so.
  if (payment.status !== 'succeeded') return conflict(payment)
  if (payment.refunds.has(refund_id)) return []
  const refund_amount = grantedRefund(payment, amount)
  if (refund_amount === undefined)
    return [{ type: 'RefundRefused', data: { refund_id, code: 'payment_state_conflict' } }]
  const refunded_amount = payment.refunded + refund_amount
  return [{ type: 'PaymentRefunded', data: { ...payment.terms, refund_id, refund_amount, refunded_amount, reason } }]
}

const refuse = ({ code, held_by }: RefusePayment, payment: PaymentState): Decision => {
  if (payment.status === 'none') return reject('resource_not_found')
  if (payment.status === 'refused' && payment.code === code) return []
  if (payment.status !== 'initiated') return conflict(payment)
  return [{ type: 'PaymentFailed', data: { ...payment.terms, code, held_by } }]
}

const fail = ({ code }: FailPayment, payment: PaymentState): Decision => {
  if (payment.status === 'none') return reject('resource_not_found')
  if (payment.status === 'failed' && payment.code === code) return []
  if (payment.status !== 'accepted') return conflict(payment)
  return [{ type: 'PaymentFailed', data: { ...payment.terms, code, held_by: null } }]
}

const withRefund = (payment: PaymentState, id: RefundId, amount: bigint | null, refunded?: bigint): PaymentState => {
  if (payment.status !== 'succeeded') return payment
  const refunds = payment.refunds.with(id, amount)
  return { ...payment, refunds, refunded: refunded ?? payment.refunded }
}

const evolve = (payment: PaymentState, event: PaymentEvent): PaymentState => {
  switch (event.type) {
    case 'PaymentInitiated': {
      const { metadata: _metadata, claim: _claim, reference_stream: referenceStream, ...terms } = event.data
      return { status: 'initiated', terms, referenceStream }
    }
    case 'PaymentAccepted':
      return { status: 'accepted', terms: event.data }
    case 'PaymentSucceeded':
      return { status: 'succeeded', terms: event.data, refunded: 0n, refunds: PersistentMap.of() }
    case 'PaymentRefunded':
      return withRefund(payment, event.data.refund_id, event.data.refund_amount, event.data.refunded_amount)
    case 'RefundRefused':
      return withRefund(payment, event.data.refund_id, null)
    case 'PaymentFailed': {
      const { code, held_by: _held_by, ...terms } = event.data
      return { status: payment.status === 'accepted' ? 'failed' : 'refused', terms, code }
    }
  }
}

/** The refund exists already when RefundPayment is sent, so its initiation checks the length. */
export const paymentDecider: Decider<PaymentState, PaymentCommand, PaymentEvent, PaymentCode> = {
  initial: { status: 'none' },
  ...decidedBy<PaymentCommand, PaymentState, Decision>({
    InitiatePayment: ['unlimited', initiate],
    ConfirmPayment: ['unlimited', confirm],
    RefusePayment: ['unlimited', refuse],
    SettlePayment: ['unlimited', settle],
    FailPayment: ['unlimited', fail],
    RefundPayment: ['unlimited', refund],
  }),
  evolve,
}
