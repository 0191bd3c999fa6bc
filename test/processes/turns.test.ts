import { expect } from 'chai'
import { createTenantFairness } from '../../src/processes/exports/tenantFairness.ts'

type Job = { readonly tenant: string; readonly n: number }
const jobs = (tenant: string, count: number): Job[] => Array.from({ length: count }, (_, n) => ({ tenant, n }))

describe('turns by tenant', () => {
  /** Begins jobs as places become free, the oldest under way ends first. */
  const play = (waiting: readonly Job[], places: number): Job[] => {
    const turns = createTenantFairness<Job>(({ tenant }) => tenant)
    const due = [...waiting]
    const underWay: Job[] = []
    const begun: Job[] = []
    for (;;) {
      if (underWay.length === places) underWay.shift()
      const next = turns.next(due, underWay)
      if (next === undefined) return begun
      due.splice(due.indexOf(next), 1)
      underWay.push(next)
      begun.push(next)
    }
  }

  it('give each tenant one of two places, however many jobs another has', () => {
    const begun = play([...jobs('a', 6), ...jobs('b', 2), ...jobs('c', 1)], 2)
    expect(begun.slice(0, 5).map(({ tenant }) => tenant)).to.have.members(['a', 'b', 'c', 'a', 'b'])
    expect(new Set(begun.slice(0, 3).map(({ tenant }) => tenant)).size).to.equal(3)
    expect(begun).to.have.length(9)
  })

  it('keep the order of the jobs of one tenant', () => {
    const begun = play([...jobs('a', 3), ...jobs('b', 3)], 1)
    for (const tenant of ['a', 'b'])
      expect(begun.filter(job => job.tenant === tenant).map(({ n }) => n)).to.deep.equal([0, 1, 2])
  })

  it('go round, so that no tenant has a second turn while another waits for its first', () => {
    const begun = play([...jobs('a', 3), ...jobs('b', 3), ...jobs('c', 3)], 1)
    expect(begun.map(({ tenant }) => tenant).join('')).to.equal('abcabcabc')
  })

  it('go to the tenant with the fewest jobs under way, although its last turn was later', () => {
    const turns = createTenantFairness<Job>(({ tenant }) => tenant)
    const [slow, slowNext] = jobs('a', 2) as [Job, Job]
    const [quick, quickNext] = jobs('b', 2) as [Job, Job]
    expect(turns.next([slow, slowNext, quick, quickNext], [])).to.equal(slow)
    expect(turns.next([slowNext, quick, quickNext], [slow])).to.equal(quick)
    expect(turns.next([slowNext, quickNext], [slow])).to.equal(quickNext)
  })

  it('go to a tenant that has come just now, before the next of one that has had many', () => {
    const turns = createTenantFairness<Job>(({ tenant }) => tenant)
    const [first, second, third] = jobs('a', 3) as [Job, Job, Job]
    const newcomer = { tenant: 'b', n: 0 }
    expect(turns.next([first, second, third], [])).to.equal(first)
    expect(turns.next([second, third], [first])).to.equal(second)
    expect(turns.next([third, newcomer], [second])).to.equal(newcomer)
    expect(turns.next([third], [second, newcomer])).to.equal(third)
    expect(turns.next([], [])).to.equal(undefined)
  })
})
