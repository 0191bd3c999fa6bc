import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { parkingDecider } from './decider.ts'
import { parkingEvents } from './events.ts'
import { parkingFacts } from './facts.ts'

export const parking = aggregateOf({
  category: 'parking',
  prefix: 'prk',
  decider: parkingDecider,
  codec: codecOf(parkingEvents),
  facts: parkingFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
