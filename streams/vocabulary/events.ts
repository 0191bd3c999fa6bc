import { z } from 'zod'
import type { EventOf } from '../codec.ts'

export const vocabularyEvents = {
  /** Builds with a smaller vocabulary cannot read every event that follows. */
  VocabularyRaised: z.object({ vocabulary: z.int().min(2) }),
}
export type VocabularyEvent = EventOf<typeof vocabularyEvents>
