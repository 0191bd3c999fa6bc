import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type AccessCode, type AccessCommand, type AccessState, accessDecider, accessGrowth } from './decider.ts'
import { type AccessEvent, accessEvents } from './events.ts'
import { accessFacts } from './facts.ts'

export const access: Aggregate<AccessState, AccessCommand, AccessEvent, AccessCode> = {
  category: 'access',
  prefix: 'acc',
  decider: accessDecider,
  growth: accessGrowth,
  codec: codecOf(accessEvents),
  facts: accessFacts,
}

export { ACCESS_CHECKS } from './events.ts'
export type * from './decider.ts'
export type * from './events.ts'
