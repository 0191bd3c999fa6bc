import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type PaymentCode, type PaymentCommand, type PaymentState, paymentDecider, paymentGrowth } from './decider.ts'
import { type PaymentEvent, paymentEvents } from './events.ts'
import { paymentFacts } from './facts.ts'

export const payment: Aggregate<PaymentState, PaymentCommand, PaymentEvent, PaymentCode> = {
  category: 'payment',
  prefix: 'pay',
  decider: paymentDecider,
  growth: paymentGrowth,
  codec: codecOf(paymentEvents),
  facts: paymentFacts,
}

export type * from './decider.ts'
export { grantedRefund, refundable } from './decider.ts'
export type * from './events.ts'
