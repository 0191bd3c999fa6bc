import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { referenceDecider } from './decider.ts'
import { referenceEvents } from './events.ts'
import { referenceFacts } from './facts.ts'

export const reference = aggregateOf({
  category: 'reference',
  prefix: 'ref',
  decider: referenceDecider,
  codec: codecOf(referenceEvents),
  facts: referenceFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
