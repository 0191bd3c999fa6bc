import type { FactMap } from '../facts.ts'
import type { ReferenceEvent } from './events.ts'

/** Internal events: the payment has facts of its own. */

export const referenceFacts: FactMap<ReferenceEvent> = {
  ReferenceTaken: 'internal',
  ReferenceRefused: 'internal',
  ReferenceReleased: 'internal',
}
