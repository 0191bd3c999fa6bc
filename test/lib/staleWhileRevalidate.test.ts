import { expect } from 'chai'
import { createRevalidated, type RevalidationTimes } from '../../src/lib/staleWhileRevalidate.ts'

const TIMES: RevalidationTimes = { refreshAfterMs: 10, maxAgeMs: 20, outageMaxMs: 100, retryAfterMs: 5 }

describe('a revalidated value', () => {
  const harness = (onFailure: (error: unknown) => void = () => undefined) => {
    const state = { nowMs: 0, next: 0, fails: false }
    const value = createRevalidated({
      ...TIMES,
      monotonicNow: () => state.nowMs,
      onFailure,
      read: async () => {
        if (state.fails) throw new Error('unreachable')
        return ++state.next
      },
    })
    return { state, value }
  }

  it('is read before its first use, and not again while it is fresh', async () => {
    const { state, value } = harness()
    await value.ready()
    state.nowMs = 9
    expect(value.ready()).to.equal(undefined)
    expect([value.value(), value.begun()]).to.deep.equal([1, 1])
  })

  it('is read in the background while it is aging, and before its use when it is stale', async () => {
    const { state, value } = harness()
    await value.ready()
    state.nowMs = 10
    expect(value.ready()).to.equal(undefined)
    await value.underWay()
    expect(value.value()).to.equal(2)
    state.nowMs = 30
    expect(value.ready()).to.be.instanceOf(Promise)
    await value.underWay()
    expect(value.value()).to.equal(3)
  })

  it('remains in use during an outage, and is read again after a pause', async () => {
    const { state, value } = harness()
    await value.ready()
    Object.assign(state, { nowMs: 30, fails: true })
    await value.ready()
    expect([value.isFailing(), value.begun()]).to.deep.equal([true, 2])
    state.nowMs = 34
    expect([value.ready(), value.value(), value.begun()]).to.deep.equal([undefined, 1, 2])
    Object.assign(state, { nowMs: 35, fails: false })
    expect(value.ready()).to.equal(undefined)
    await value.underWay()
    expect([value.value(), value.begun(), value.lastGood()]).to.deep.equal([2, 3, 3])
  })

  it('is waited for again once the outage has lasted too long', async () => {
    const { state, value } = harness()
    await value.ready()
    Object.assign(state, { nowMs: 99, fails: true })
    await value.ready()
    state.nowMs = 101
    expect(value.ready(), 'before the pause ends').to.equal(undefined)
    state.nowMs = 105
    expect(value.ready()).to.be.instanceOf(Promise)
  })

  it('has one reading for all concurrent uses', async () => {
    const { value } = harness()
    await Promise.all([value.ready(), value.ready(), value.read()])
    expect(value.begun()).to.equal(1)
  })

  it('rejects only for callers that wait when the failure is thrown again', async () => {
    const { state, value } = harness(error => {
      throw error
    })
    await value.ready()
    Object.assign(state, { nowMs: 10, fails: true })
    expect(value.ready()).to.equal(undefined)
    await value.underWay()?.catch(() => undefined)
    state.nowMs = 101
    const waited = await value.ready()?.catch((error: Error) => error.message)
    expect(waited).to.equal('unreachable')
  })
})
