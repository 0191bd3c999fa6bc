import type { FactMap } from '../facts.ts'
import type { KeyBindingEvent } from './events.ts'

/** Of no interest to subscribers: the facts are those of the command that the key belongs to. */
export const keyBindingFacts: FactMap<KeyBindingEvent> = { KeyBound: 'internal' }
