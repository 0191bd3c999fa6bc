import type { DataOf } from '../codec.ts'
import { type Decider, type Rejection, reject } from '../decider.ts'
import type { RefundEvent } from './events.ts'

export type RefundTerms = Omit<DataOf<RefundEvent, 'RefundInitiated'>, 'claim'>
export type InitiateRefund = DataOf<RefundEvent, 'RefundInitiated'> & { type: 'InitiateRefund' }
export type RefundCommand = InitiateRefund

export type RefundCode = 'concurrent_modification'

/**
 * A refund's stream has only its request and idempotency record. Whether a refund is granted, and how much, is decided
 * in the payment's stream, which has all refunds of the payment (streams/payment/decider.ts).
 */
export type RefundState = { readonly status: 'none' } | { readonly status: 'initiated'; readonly terms: RefundTerms }

const decide = (
  { type: _, ...initiated }: RefundCommand,
  refund: RefundState,
): readonly RefundEvent[] | Rejection<RefundCode> =>
  refund.status === 'none' ? [{ type: 'RefundInitiated', data: initiated }] : reject('concurrent_modification')

const evolve = (_: RefundState, { data: { claim: __, ...terms } }: RefundEvent): RefundState => ({
  status: 'initiated',
  terms,
})

export const refundDecider: Decider<RefundState, RefundCommand, RefundEvent, RefundCode> = {
  initial: { status: 'none' },
  decide,
  evolve,
  growth: { InitiateRefund: 'unlimited' },
}
