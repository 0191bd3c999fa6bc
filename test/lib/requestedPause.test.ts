import { expect } from 'chai'
import { requestedPauseMs } from '../../src/lib/requestedPause.ts'

const DATE = 'Sun, 06 Nov 1994 08:49:30 GMT'
const DAY_MS = 86_400_000

describe('the pause that Retry-After requests', () => {
  for (const [text, expected] of [
    ['7', 7_000],
    ['0', 0],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 7_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 7_000],
    ['Sun Nov  6 08:49:37 1994', 7_000],
    ['Sun, 06 Nov 1994 08:49:00 GMT', 0],
    ['Sun, 06 Nov 2094 08:49:37 GMT', DAY_MS],
    ['9'.repeat(400), DAY_MS],
    ['1.5', undefined],
    ['-1', undefined],
    ['soon', undefined],
    ['Sun, 99 Nov 1994 08:49:37 GMT', undefined],
    ['', undefined],
  ] as const)
    it(`is ${expected === undefined ? 'not known' : `${expected} ms`} for ${JSON.stringify(text.slice(0, 40))}`, () => {
      expect(requestedPauseMs(new Headers({ 'retry-after': text, date: DATE }))).to.equal(expected)
    })

  it('is not known without the header', () => {
    expect(requestedPauseMs(new Headers())).to.equal(undefined)
  })

  it('counts from the local clock without a Date', () => {
    const headers = new Headers({ 'retry-after': new Date(Date.now() + 60_000).toUTCString() })
    expect(requestedPauseMs(headers)).to.be.within(1, 60_000)
  })
})
