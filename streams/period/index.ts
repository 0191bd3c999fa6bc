import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { periodDecider } from './decider.ts'
import { periodEvents } from './events.ts'
import { periodFacts } from './facts.ts'

export const period = aggregateOf({
  category: 'period',
  prefix: 'per',
  decider: periodDecider,
  codec: codecOf(periodEvents),
  facts: periodFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
