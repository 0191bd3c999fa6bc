import type { Annotations, Claim } from '../claim.ts'
import { type Decider, type Rejection, reject } from '../decider.ts'
import type { InvoiceId, OrderId, PaymentId } from '../ids.ts'
import type { PaymentEvent } from './events.ts'

export type PaymentTerms = {
  readonly invoice_id: InvoiceId
  readonly order_id: OrderId
  readonly amount: bigint
  readonly currency: string
  readonly reference: string | null
  readonly settlement: 'immediate' | 'deferred'
}

export type InitiatePayment = PaymentTerms & { type: 'InitiatePayment'; metadata: Annotations; claim: Claim }
/** The invoice has taken the amount: a deferred payment is now accepted, an immediate one has succeeded. */
export type ConfirmPayment = { type: 'ConfirmPayment' }
export type SettlePayment = { type: 'SettlePayment' }
export type FailPayment = { type: 'FailPayment'; code: string; held_by: PaymentId | null }
export type PaymentCommand = InitiatePayment | ConfirmPayment | SettlePayment | FailPayment

export type PaymentCode = 'resource_not_found' | 'payment_state_conflict' | 'concurrent_modification'

/**
 * initiated ─▶ succeeded (immediate) or accepted (deferred), as the invoice decides; or failed, when it refuses.
 * accepted ─▶ succeeded or failed, as the settler says. Callers see `initiated` and `accepted` both as pending.
 */
export type PaymentState =
  | { readonly status: 'none' }
  | { readonly status: 'initiated' | 'accepted' | 'succeeded'; readonly terms: PaymentTerms }
  | { readonly status: 'failed'; readonly terms: PaymentTerms; readonly code: string }

type Decision = readonly PaymentEvent[] | Rejection<PaymentCode>

const initiate = ({ type: _, ...claimed }: InitiatePayment, payment: PaymentState): Decision =>
  payment.status === 'none' ? [{ type: 'PaymentInitiated', data: claimed }] : reject('concurrent_modification')

const confirm = (payment: PaymentState): Decision => {
  if (payment.status === 'none') return reject('resource_not_found')
  if (payment.status === 'failed') return reject('payment_state_conflict', { state: payment.status })
  if (payment.status !== 'initiated') return []
  const type = payment.terms.settlement === 'immediate' ? 'PaymentSucceeded' : 'PaymentAccepted'
  return [{ type, data: payment.terms }]
}

const settle = (payment: PaymentState): Decision => {
  if (payment.status === 'none') return reject('resource_not_found')
  if (payment.status !== 'accepted') return reject('payment_state_conflict', { state: payment.status })
  return [{ type: 'PaymentSucceeded', data: payment.terms }]
}

const fail = ({ code, held_by }: FailPayment, payment: PaymentState): Decision => {
  if (payment.status === 'none') return reject('resource_not_found')
  if (payment.status === 'failed' && payment.code === code) return []
  if (payment.status !== 'initiated' && payment.status !== 'accepted')
    return reject('payment_state_conflict', { state: payment.status })
  return [{ type: 'PaymentFailed', data: { ...payment.terms, code, held_by } }]
}

const decide = (command: PaymentCommand, state: PaymentState): Decision => {
  switch (command.type) {
    case 'InitiatePayment':
      return initiate(command, state)
    case 'ConfirmPayment':
      return confirm(state)
    case 'SettlePayment':
      return settle(state)
    case 'FailPayment':
      return fail(command, state)
  }
}

const evolve = (_: PaymentState, event: PaymentEvent): PaymentState => {
  switch (event.type) {
    case 'PaymentInitiated': {
      const { metadata: _metadata, claim: _claim, ...terms } = event.data
      return { status: 'initiated', terms }
    }
    case 'PaymentAccepted':
      return { status: 'accepted', terms: event.data }
    case 'PaymentSucceeded':
      return { status: 'succeeded', terms: event.data }
    case 'PaymentFailed': {
      const { code, held_by: _held_by, ...terms } = event.data
      return { status: 'failed', terms, code }
    }
  }
}

export const paymentDecider: Decider<PaymentState, PaymentCommand, PaymentEvent, PaymentCode> = {
  initial: { status: 'none' },
  decide,
  evolve,
}
