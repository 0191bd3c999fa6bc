import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { manifestDecider } from './decider.ts'
import { manifestEvents } from './events.ts'
import { manifestFacts } from './facts.ts'

export const manifest = aggregateOf({
  category: 'manifest',
  prefix: 'man',
  decider: manifestDecider,
  codec: codecOf(manifestEvents),
  facts: manifestFacts,
})

export { nextPosition } from './decider.ts'
export type * from './decider.ts'
export type * from './events.ts'
