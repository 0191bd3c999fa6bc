import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { orderDecider } from './decider.ts'
import { orderEvents } from './events.ts'
import { orderFacts } from './facts.ts'

export const order = aggregateOf({
  category: 'order',
  prefix: 'ord',
  decider: orderDecider,
  codec: codecOf(orderEvents),
  facts: orderFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
