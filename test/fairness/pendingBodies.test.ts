import { expect } from 'chai'
import { createPendingBodies } from '../../src/fairness/pendingBodies.ts'

describe('pending bodies', () => {
  const start = (max: number, maxBytes: number) => {
    const bodies = createPendingBodies(max, maxBytes)
    const given: string[] = []
    const wait = (tenant: string, caller: string, name: string, bytes = 10) =>
      bodies.add({ tenant, caller }, { bytes, giveUp: () => void given.push(name) })
    return { given, wait }
  }

  it('are given up by the caller that has the most, the oldest first, by count and by bytes', () => {
    const { given, wait } = start(3, 100)
    wait('a', 'one', 'first')
    wait('a', 'one', 'second')
    const done = wait('a', 'another', 'third')
    wait('a', 'another', 'fourth')
    expect(given).to.deep.equal(['first'])
    done()
    wait('a', 'a third', 'fifth', 85)
    expect(given).to.deep.equal(['first', 'second'])
  })

  it('are given up by the tenant that has the most, however many callers it has', () => {
    const { given, wait } = start(10, 1_000)
    wait('honest', 'one', 'honest 1')
    wait('honest', 'one', 'honest 2')
    for (let n = 0; n < 100; n++) wait('greedy', `caller ${n}`, `greedy ${n}`)
    expect(given).to.have.length(92)
    expect(given.filter(name => name.startsWith('honest'))).to.deep.equal([])
  })
})
