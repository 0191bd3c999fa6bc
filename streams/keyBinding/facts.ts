import type { FactMap } from '../facts.ts'
import type { KeyBindingEvent } from './events.ts'

/** Internal events: the command that the key belongs to has facts of its own. */
export const keyBindingFacts: FactMap<KeyBindingEvent> = { KeyBound: 'internal' }
