import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { accessDecider } from './decider.ts'
import { accessEvents } from './events.ts'
import { accessFacts } from './facts.ts'

export const access = aggregateOf({
  category: 'access',
  prefix: 'acc',
  decider: accessDecider,
  codec: codecOf(accessEvents),
  facts: accessFacts,
})

export { ACCESS_CHECKS } from './events.ts'
export type * from './decider.ts'
export type * from './events.ts'
