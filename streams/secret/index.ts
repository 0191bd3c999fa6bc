import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type MakeSecret, secretDecider, secretGrowth, type SecretState } from './decider.ts'
import { type SecretEvent, secretEvents } from './events.ts'
import { secretFacts } from './facts.ts'

export const secret: Aggregate<SecretState, MakeSecret, SecretEvent, never> = {
  category: 'secret',
  prefix: 'sec',
  decider: secretDecider,
  growth: secretGrowth,
  codec: codecOf(secretEvents),
  facts: secretFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
