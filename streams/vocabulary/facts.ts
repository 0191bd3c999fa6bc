import type { FactMap } from '../facts.ts'
import type { VocabularyEvent } from './events.ts'

/** Internal event: it concerns the builds of the service, not its callers. */

export const vocabularyFacts: FactMap<VocabularyEvent> = { VocabularyRaised: 'internal' }
