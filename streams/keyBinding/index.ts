import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type BindKey, type KeyBindingState, keyBindingDecider, keyBindingGrowth } from './decider.ts'
import { type KeyBindingEvent, keyBindingEvents } from './events.ts'
import { keyBindingFacts } from './facts.ts'

export const keyBinding: Aggregate<KeyBindingState, BindKey, KeyBindingEvent, never> = {
  category: 'keyBinding',
  prefix: 'bnd',
  decider: keyBindingDecider,
  growth: keyBindingGrowth,
  codec: codecOf(keyBindingEvents),
  facts: keyBindingFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
