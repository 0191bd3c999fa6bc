import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { secretDecider } from './decider.ts'
import { secretEvents } from './events.ts'
import { secretFacts } from './facts.ts'

export const secret = aggregateOf({
  category: 'secret',
  prefix: 'sec',
  decider: secretDecider,
  codec: codecOf(secretEvents),
  facts: secretFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
