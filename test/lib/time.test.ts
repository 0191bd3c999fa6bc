import { expect } from 'chai'
import { backoffMs, sleep, within } from '../../src/lib/time.ts'
import { rejectionOf } from '../support/rejection.ts'

const never = new Promise<never>(() => undefined)
const late = (): never => {
  throw new Error('late')
}

describe('a limit of time', () => {
  it('leaves work that settles before it as it is', async () => {
    expect(await within(Promise.resolve(1), 1_000, late)).to.equal(1)
    const failed = await rejectionOf(within(Promise.reject(new Error('failed')), 1_000, late))
    expect(failed).to.have.property('message', 'failed')
  })

  it('ends the wait with the error or the value of the caller', async () => {
    expect(await rejectionOf(within(never, 1, late))).to.have.property('message', 'late')
    expect(await within(never, 1, () => 'over')).to.equal('over')
  })
})

describe('a pause', () => {
  it('ends with its time', () => sleep(1, new AbortController().signal))

  it('ends when its signal aborts, and is none after that', async () => {
    const stop = new AbortController()
    const paused = sleep(30_000, stop.signal)
    stop.abort()
    await paused
    await sleep(30_000, stop.signal)
  })
})

describe('the pause after failures', () => {
  it('doubles up to its limit', () =>
    expect([0, 1, 2, 3, 9].map(failures => backoffMs(failures, 100, 700))).to.deep.equal([100, 200, 400, 700, 700]))
})
