import { vocabulary, type VocabularyEvent } from '../../streams/vocabulary/index.ts'
import { scenario } from '../support/scenario.ts'

const { given } = scenario(vocabulary.decider)
const raised = (to: number): VocabularyEvent => ({ type: 'VocabularyRaised', data: { vocabulary: to } })
const raise = (to: number) => ({ type: 'RaiseVocabulary', vocabulary: to }) as const

describe('the vocabulary of a log', () => {
  it('is 1 at first', () => given().when(raise(1)).expectNothing())
  it('is raised', () => given(raised(2)).when(raise(3)).expectOnce(raised(3)))
  it('is never lowered', () => given(raised(3), raised(2)).when(raise(3)).expectNothing())
})
