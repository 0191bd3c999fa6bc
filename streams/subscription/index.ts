import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { subscriptionDecider } from './decider.ts'
import { subscriptionEvents } from './events.ts'
import { subscriptionFacts } from './facts.ts'

export const subscription = aggregateOf({
  category: 'subscription',
  prefix: 'sub',
  decider: subscriptionDecider,
  codec: codecOf(subscriptionEvents),
  facts: subscriptionFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
