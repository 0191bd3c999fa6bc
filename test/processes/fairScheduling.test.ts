import { expect } from 'chai'
import fc from 'fast-check'
import { createTenantRoundRobin, createTenantScheduler } from '../../src/processes/fairScheduling.ts'

type Item = { readonly id: string; readonly tenant_id: string }

const item = (id: string): Item => ({ id, tenant_id: id.slice(0, 1) })
const many = (tenant: string, count: number, from = 0): Item[] =>
  Array.from({ length: count }, (_, n) => item(`${tenant}${from + n}`))
const ids = (items: readonly Item[]): string => items.map(({ id }) => id).join(' ')

describe('the round robin of subscriptions', () => {
  it('serves one of each tenant, then the second of each', () => {
    const turns = createTenantRoundRobin<Item>()
    expect(ids(turns.inOrder([...many('a', 4), ...many('b', 1), ...many('c', 2)]))).to.equal('a0 b0 c0 a1 c1 a2 a3')
    expect(turns.inOrder([])).to.deep.equal([])
  })

  it('continues where a round ended early', () => {
    const turns = createTenantRoundRobin<Item>()
    const all = [...many('a', 5), ...many('b', 1)]
    const taken: string[] = []
    for (let round = 0; round < 6; round++)
      for (const next of turns.inOrder(all).slice(0, 2)) {
        turns.hadTurn(next)
        taken.push(next.id)
      }
    expect(taken.filter(id => id === 'b0')).to.have.length(6)
    expect(taken.filter(id => id !== 'b0').join(' ')).to.equal('a0 a1 a2 a3 a4 a0')
  })

  it('serves a new tenant or subscription last', () => {
    const turns = createTenantRoundRobin<Item>()
    const old = [...many('b', 3), ...many('c', 1)]
    for (const next of turns.inOrder(old).slice(0, 2)) turns.hadTurn(next)
    const order = turns.inOrder([...many('a', 2), ...many('b', 3), item('b9'), ...many('c', 1)])
    expect(ids(order)).to.equal('b1 c0 a0 b2 a1 b0 b9')
  })

  it('serves each subscription, with any number of new ones of another tenant', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(40), { minLength: 10, maxLength: 30 }),
        fc.integer({ min: 2, max: 5 }),
        (added, width) => {
          const turns = createTenantRoundRobin<Item>()
          const waiting = new Map<string, number>([
            ['b0', 0],
            ['b1', 0],
          ])
          let all = [item('b0'), item('b1')]
          for (const [round, count] of added.entries()) {
            all = [...many('a', count, round * 100), ...all]
            for (const next of turns.inOrder(all).slice(0, width)) {
              turns.hadTurn(next)
              if (waiting.has(next.id)) waiting.set(next.id, round)
            }
            for (const [id, last] of waiting) expect(round - last, id).to.be.at.most(3)
          }
        },
      ),
    )
  })

  it('forgets subscriptions that are no longer passed', () => {
    const turns = createTenantRoundRobin<Item>()
    for (const next of turns.inOrder(many('a', 3))) turns.hadTurn(next)
    turns.inOrder(many('b', 1))
    expect(ids(turns.inOrder([item('a2'), item('a0'), item('b0')])), 'a2 is new, like a0').to.equal('b0 a2 a0')
  })
})

type Job = { readonly tenant: string; readonly n: number }
const jobs = (tenant: string, count: number): Job[] => Array.from({ length: count }, (_, n) => ({ tenant, n }))

describe('the scheduler of exports', () => {
  /** The order in which jobs begin when `atOnceMax` run concurrently and the one that began first ends first. */
  const orderOf = (waiting: readonly Job[], atOnceMax: number): Job[] => {
    const scheduler = createTenantScheduler<Job>(({ tenant }) => tenant)
    const due = [...waiting]
    const underWay: Job[] = []
    const begun: Job[] = []
    for (;;) {
      if (underWay.length === atOnceMax) underWay.shift()
      const next = scheduler.next(due, underWay)
      if (next === undefined) return begun
      due.splice(due.indexOf(next), 1)
      underWay.push(next)
      begun.push(next)
    }
  }

  it('begins one job of each tenant first, with any number of jobs of another tenant', () => {
    const begun = orderOf([...jobs('a', 6), ...jobs('b', 2), ...jobs('c', 1)], 2)
    expect(begun.slice(0, 5).map(({ tenant }) => tenant)).to.have.members(['a', 'b', 'c', 'a', 'b'])
    expect(new Set(begun.slice(0, 3).map(({ tenant }) => tenant)).size).to.equal(3)
    expect(begun).to.have.length(9)
  })

  it('keeps the order of the jobs of one tenant', () => {
    const begun = orderOf([...jobs('a', 3), ...jobs('b', 3)], 1)
    for (const tenant of ['a', 'b'])
      expect(begun.filter(job => job.tenant === tenant).map(({ n }) => n)).to.deep.equal([0, 1, 2])
  })

  it('gives no tenant a second turn while another waits for its first', () => {
    const begun = orderOf([...jobs('a', 3), ...jobs('b', 3), ...jobs('c', 3)], 1)
    expect(begun.map(({ tenant }) => tenant).join('')).to.equal('abcabcabc')
  })

  it('prefers the tenant with the fewest jobs under way, although its last turn was later', () => {
    const scheduler = createTenantScheduler<Job>(({ tenant }) => tenant)
    const [slow, slowNext] = jobs('a', 2) as [Job, Job]
    const [quick, quickNext] = jobs('b', 2) as [Job, Job]
    expect(scheduler.next([slow, slowNext, quick, quickNext], [])).to.equal(slow)
    expect(scheduler.next([slowNext, quick, quickNext], [slow])).to.equal(quick)
    expect(scheduler.next([slowNext, quickNext], [slow])).to.equal(quickNext)
  })

  it('begins no more jobs of one tenant than it may have under way, although nothing else is due', () => {
    const scheduler = createTenantScheduler<Job>(({ tenant }) => tenant, 1)
    const [first, second] = jobs('a', 2) as [Job, Job]
    const other = { tenant: 'b', n: 0 }
    expect(scheduler.next([first, second], [])).to.equal(first)
    expect(scheduler.next([second], [first])).to.equal(undefined)
    expect(scheduler.next([second, other], [first])).to.equal(other)
    expect(scheduler.next([second], [other])).to.equal(second)
  })

  it('prefers a new tenant with no job under way to one that has a job under way', () => {
    const scheduler = createTenantScheduler<Job>(({ tenant }) => tenant)
    const [first, second, third] = jobs('a', 3) as [Job, Job, Job]
    const other = { tenant: 'b', n: 0 }
    expect(scheduler.next([first, second, third], [])).to.equal(first)
    expect(scheduler.next([second, third], [first])).to.equal(second)
    expect(scheduler.next([third, other], [second])).to.equal(other)
    expect(scheduler.next([third], [second, other])).to.equal(third)
    expect(scheduler.next([], [])).to.equal(undefined)
  })
})
