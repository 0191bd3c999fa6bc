import { expect } from 'chai'
import { preferenceOf } from '../../../src/http/request/preference.ts'

const MAX_MS = 4_000

describe('the wait that a caller prefers', () => {
  const cases: readonly (readonly [header: string | undefined, waitMs: number | undefined])[] = [
    [undefined, undefined],
    ['respond-async', undefined],
    ['wait=0', 0],
    ['wait=3', 3_000],
    ['wait=4', 4_000],
    ['wait=6', MAX_MS],
    ['wait=999999', MAX_MS],
    ['wait="2", wait=3', 2_000],
  ]
  for (const [header, waitMs] of cases)
    it(`is ${waitMs} ms for ${header}, where the maximum is ${MAX_MS} ms`, () =>
      expect(preferenceOf(header, MAX_MS).waitMs).to.equal(waitMs))
})
