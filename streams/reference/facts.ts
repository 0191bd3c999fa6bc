import type { FactMap } from '../facts.ts'
import type { ReferenceEvent } from './events.ts'

export const referenceFacts: FactMap<ReferenceEvent> = {
  ReferenceTaken: 'internal',
  ReferenceRefused: 'internal',
  ReferenceReleased: 'internal',
}
