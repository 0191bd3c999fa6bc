import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { keyBindingDecider } from './decider.ts'
import { keyBindingEvents } from './events.ts'
import { keyBindingFacts } from './facts.ts'

export const keyBinding = aggregateOf({
  category: 'keyBinding',
  prefix: 'bnd',
  decider: keyBindingDecider,
  codec: codecOf(keyBindingEvents),
  facts: keyBindingFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
