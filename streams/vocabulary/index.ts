import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type RaiseVocabulary, vocabularyDecider, vocabularyGrowth } from './decider.ts'
import { type VocabularyEvent, vocabularyEvents } from './events.ts'
import { vocabularyFacts } from './facts.ts'

export const vocabulary: Aggregate<number, RaiseVocabulary, VocabularyEvent, never> = {
  category: 'vocabulary',
  prefix: 'voc',
  decider: vocabularyDecider,
  growth: vocabularyGrowth,
  codec: codecOf(vocabularyEvents),
  facts: vocabularyFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
