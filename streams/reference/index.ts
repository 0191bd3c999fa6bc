import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type ReferenceCommand, type ReferenceState, referenceDecider, referenceGrowth } from './decider.ts'
import { type ReferenceEvent, referenceEvents } from './events.ts'
import { referenceFacts } from './facts.ts'

export const reference: Aggregate<ReferenceState, ReferenceCommand, ReferenceEvent, never> = {
  category: 'reference',
  prefix: 'ref',
  decider: referenceDecider,
  growth: referenceGrowth,
  codec: codecOf(referenceEvents),
  facts: referenceFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
