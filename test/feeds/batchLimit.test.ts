import { expect } from 'chai'
import { createBatchLimit } from '../../src/feeds/batchLimit.ts'

describe('the number of events that a feed processes at once', () => {
  it('is halved by a batch that fails, down to one', () => {
    const limit = createBatchLimit()
    const seen = [limit.of(4_000)]
    for (const events of [4_000, 2_000, 3, 1, 1]) {
      limit.failed(events)
      seen.push(limit.of(4_000))
    }
    expect(seen).to.deep.equal([4_000, 2_000, 1_000, 1, 1, 1])
  })

  it('is doubled by a batch of this size that succeeds, and not by a smaller one, up to what is wanted', () => {
    const limit = createBatchLimit()
    limit.failed(40)
    const seen: number[] = []
    for (const events of [1, 19, 20, 39, 40, 80]) {
      limit.succeeded(events)
      seen.push(limit.of(100))
    }
    expect(seen).to.deep.equal([20, 20, 40, 40, 80, 100])
  })
})
