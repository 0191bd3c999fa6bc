import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { refundDecider } from './decider.ts'
import { refundEvents } from './events.ts'
import { refundFacts } from './facts.ts'

export const refund = aggregateOf({
  category: 'refund',
  prefix: 'rfd',
  decider: refundDecider,
  codec: codecOf(refundEvents),
  facts: refundFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
