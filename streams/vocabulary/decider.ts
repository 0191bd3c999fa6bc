import type { Decider } from '../decider.ts'
import type { VocabularyEvent } from './events.ts'

export type RaiseVocabulary = { type: 'RaiseVocabulary'; vocabulary: number }

/** The vocabulary that a build needs to read the log. It only grows, because events stay in the log. */
export const vocabularyDecider: Decider<number, RaiseVocabulary, VocabularyEvent, never> = {
  initial: 1,
  decide: ({ vocabulary }, needed) => (vocabulary > needed ? [{ type: 'VocabularyRaised', data: { vocabulary } }] : []),
  evolve: (needed, { data: { vocabulary } }) => Math.max(needed, vocabulary),
  // A stream has an event for each release that added events.
  growth: { RaiseVocabulary: 'unlimited' },
}
