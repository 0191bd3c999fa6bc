import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { vocabularyDecider } from './decider.ts'
import { vocabularyEvents } from './events.ts'
import { vocabularyFacts } from './facts.ts'

export const vocabulary = aggregateOf({
  category: 'vocabulary',
  prefix: 'voc',
  decider: vocabularyDecider,
  codec: codecOf(vocabularyEvents),
  facts: vocabularyFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
