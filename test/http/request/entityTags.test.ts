import { expect } from 'chai'
import { ifMatch, ifNoneMatch, satisfiesIfRange } from '../../../src/http/request/entityTags.ts'

const CURRENT = '"3.2026-01-01"'

type Case = readonly [header: string, ifMatch: boolean, ifNoneMatch: boolean]
const CASES: readonly Case[] = [
  [CURRENT, true, true],
  ['*', true, true],
  [`"2.2026-01-01", ${CURRENT}`, true, true],
  [`W/${CURRENT}`, false, true],
  [`"2.2026-01-01" , W/${CURRENT}`, false, true],
  ['"2.2026-01-01"', false, false],
  ['"3.2025-01-01"', false, false],
  ['""', false, false],
]

describe('entity tags (RFC 9110, 13.1)', () => {
  for (const [header, strong, weak] of CASES)
    it(`${header} is compared strongly by If-Match, weakly by If-None-Match`, () => {
      expect([ifMatch(header)(CURRENT), ifNoneMatch(header)(CURRENT)]).to.deep.equal([strong, weak])
    })

  it('never match a resource that does not exist', () => {
    for (const [header] of CASES)
      expect([ifMatch(header)(undefined), ifNoneMatch(header)(undefined)]).to.deep.equal([false, false])
  })

  it('are compared strongly by If-Range', () => {
    expect([CURRENT, `W/${CURRENT}`, '"2"'].map(header => satisfiesIfRange(header, CURRENT))).to.deep.equal([
      true,
      false,
      false,
    ])
  })
})
