import { expect } from 'chai'
import { medianOf, ratioOf, rowOf, spreadOf, tableOf } from '../../../scripts/bench/measure.ts'

describe('the figures of several rounds', () => {
  it('have the middle value, or the mean of the middle two, as their median', () => {
    expect([[7], [10, 9], [30, 1, 2], [4, 1, 3, 100]].map(medianOf)).to.deep.equal([7, 9.5, 2, 3.5])
    expect(medianOf([])).to.satisfy(Number.isNaN)
  })

  it('keep their order and their range', () => {
    expect(spreadOf([10, 9, 11])).to.deep.equal({ median: 10, min: 9, max: 11, rounds: [10, 9, 11] })
  })

  it('are compared round by round, and by their medians when the rounds have no partners', () => {
    expect(ratioOf([10, 40, 30], [10, 20, 60]).rounds).to.deep.equal([1, 2, 0.5])
    expect(ratioOf([10, 40, 30], [15, 15]).rounds).to.deep.equal([2])
  })
})

describe('a row of the table', () => {
  const row = { measure: 'm', unit: '/s' }

  it('meets its goal by the median of its ratios, or of its figures if it has no reference', () => {
    const met = (figures: Omit<Parameters<typeof rowOf>[0], 'measure' | 'unit'>) => rowOf({ ...row, ...figures }).met
    expect(met({ ours: [1, 9, 9], reference: [10, 10, 10], goal: { atLeast: 0.9 } })).to.equal(true)
    expect(met({ ours: [1, 8, 9], reference: [10, 10, 10], goal: { atLeast: 0.9 } })).to.equal(false)
    expect(met({ ours: [3, 5], goal: { atMost: 4 } })).to.equal(true)
    expect(met({ ours: [3, 6], goal: { atMost: 4 } })).to.equal(false)
    expect(met({ ours: [Number.NaN], goal: { atMost: 4 } })).to.equal(false)
    expect(met({ ours: [1] })).to.equal(undefined)
  })

  it('shows medians with their range, and the goal in the unit of the compared figures', () => {
    const text = tableOf([
      rowOf({ ...row, ours: [1500, 1400, 1600], reference: [1000, 1000, 1000], goal: { atLeast: 1 }, note: 'why' }),
      rowOf({ measure: 'cpu', unit: 'ms', ours: [0.8], goal: { atMost: 0.7 } }),
    ])
    expect(text).to.contain('1,500 /s (1,400–1,600)')
    expect(text).to.contain('1.50 (1.40–1.60)')
    expect(text).to.match(/cpu +0.8 ms +– +– +≤ 0.7 ms +NO/)
    expect(text).to.contain('m: why')
  })
})
