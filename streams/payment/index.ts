import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { paymentDecider } from './decider.ts'
import { paymentEvents } from './events.ts'
import { paymentFacts } from './facts.ts'

export const payment = aggregateOf({
  category: 'payment',
  prefix: 'pay',
  decider: paymentDecider,
  codec: codecOf(paymentEvents),
  facts: paymentFacts,
})

export type * from './decider.ts'
export { grantedRefund, refundable } from './decider.ts'
export type * from './events.ts'
