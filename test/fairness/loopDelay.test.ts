import { expect } from 'chai'
import { createAdaptiveTurns, watchLoop } from '../../src/fairness/loopDelay.ts'
import { eventually } from '../support/eventually.ts'

const WINDOW_MS = 5
const NANOSECONDS_PER_MS = 1e6

/** A histogram whose turns all take `turnMs`. */
const histogramOf = (turnMs: number) => {
  const calls: string[] = []
  const call = (name: string) => (): boolean => calls.push(name) > 0
  const measured = { count: 10, mean: turnMs * NANOSECONDS_PER_MS, stddev: 0 }
  return {
    calls,
    histogram: { ...measured, enable: call('enable'), disable: call('disable'), reset: (): void => undefined },
  }
}

describe('the measurement of the event loop', () => {
  it('is off until the first request, and again when no more come', async () => {
    const { calls, histogram } = histogramOf(1)
    const delayMs = watchLoop(histogram, WINDOW_MS)
    expect(calls).to.deep.equal([])
    expect(delayMs()).to.equal(0)
    expect(calls).to.deep.equal(['enable'])
    await eventually(() => calls.join() === 'enable,disable')
    expect(delayMs()).to.equal(0)
    expect(calls.at(-1)).to.equal('enable')
  })

  it('gives the delay while requests come, and none right after a pause', async () => {
    const { calls, histogram } = histogramOf(1_000)
    const delayMs = watchLoop(histogram, WINDOW_MS)
    expect(delayMs(), 'the first request').to.equal(0)
    await eventually(() => delayMs() === 1_000)
    await eventually(() => calls.at(-1) === 'disable')
    expect(delayMs(), 'the first request after the pause').to.equal(0)
  })
})

describe('the number of requests at work', () => {
  it('is halved while the loop is late, to a few at least, and raised again when it is on time', () => {
    let nowMs = 0
    let delayMs = 0
    const turns = createAdaptiveTurns({ monotonicMs: () => nowMs }, () => delayMs)
    const windows = (count: number): number => {
      for (let n = 0; n < count; n++) {
        nowMs += 250
        turns()
      }
      return turns()
    }
    const most = windows(1)
    delayMs = 150
    expect(windows(1)).to.equal(most / 2)
    expect(windows(20)).to.be.within(2, 10)
    delayMs = 75
    const kept = windows(5)
    expect(kept, 'between late and on time').to.equal(windows(5))
    delayMs = 5
    expect(windows(1)).to.be.greaterThan(kept)
    expect(windows(20)).to.equal(most)
  })
})
