import { expect } from 'chai'
import { createReportedStates } from '../../src/cluster/feedStates.ts'
import { STALLED_AFTER_MS } from '../../src/feeds/feedProgress.ts'

/** The states of the feeds as an API process knows them. */

const LIVE = { name: 'facts_v1', position: '7', state: 'live' } as const

describe('the states of feeds in another process', () => {
  let nowMs = 0
  const open = () => createReportedStates({ monotonicMs: () => nowMs })
  beforeEach(() => {
    nowMs = 0
  })

  it('are those of the last report, and stalled when no report comes', () => {
    const states = open()
    states.receive([LIVE], true)
    expect([...states.values()]).to.deep.equal([{ ...LIVE, position: 7n }])
    nowMs = STALLED_AFTER_MS
    expect([...states.values()].map(({ name, state }) => [name, state])).to.deep.equal([['facts_v1', 'stalled']])
  })

  it('are stalled when the process has never reported, so that a new API process is not ready for ever', () => {
    const states = open()
    expect([...states.values()]).to.deep.equal([])
    nowMs = STALLED_AFTER_MS
    expect([...states.values()].map(({ name, state }) => [name, state])).to.deep.equal([['feeds', 'stalled']])
  })
})
