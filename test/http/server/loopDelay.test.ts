import { expect } from 'chai'
import { watchLoop } from '../../../src/http/server/loadShedding.ts'
import { eventually } from '../../support/eventually.ts'

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
    const isOverloaded = watchLoop(histogram, WINDOW_MS)
    expect(calls).to.deep.equal([])
    expect(isOverloaded()).to.equal(false)
    expect(calls).to.deep.equal(['enable'])
    await eventually(() => calls.join() === 'enable,disable')
    expect(isOverloaded()).to.equal(false)
    expect(calls.at(-1)).to.equal('enable')
  })

  it('reports overload while requests come, and none right after a pause', async () => {
    const { calls, histogram } = histogramOf(1_000)
    const isOverloaded = watchLoop(histogram, WINDOW_MS)
    expect(isOverloaded(), 'the first request').to.equal(false)
    await eventually(isOverloaded)
    await eventually(() => calls.at(-1) === 'disable')
    expect(isOverloaded(), 'the first request after the pause').to.equal(false)
  })
})
