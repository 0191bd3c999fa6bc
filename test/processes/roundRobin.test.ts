import { expect } from 'chai'
import fc from 'fast-check'
import { createTopicWork } from '../../src/processes/subscriptions/topicWork.ts'
import { createTenantRoundRobin } from '../../src/processes/subscriptions/roundRobin.ts'

type Place = { readonly id: string; readonly tenant_id: string }

const place = (id: string): Place => ({ id, tenant_id: id.slice(0, 1) })
const many = (tenant: string, count: number, from = 0): Place[] =>
  Array.from({ length: count }, (_, n) => place(`${tenant}${from + n}`))
const ids = (places: readonly Place[]): string => places.map(({ id }) => id).join(' ')

describe('the round robin of subscriptions', () => {
  it('serves one of each tenant, then the second of each', () => {
    const turns = createTenantRoundRobin<Place>()
    expect(ids(turns.inOrder([...many('a', 4), ...many('b', 1), ...many('c', 2)]))).to.equal('a0 b0 c0 a1 c1 a2 a3')
    expect(turns.inOrder([])).to.deep.equal([])
  })

  it('continues where a round ended early', () => {
    const turns = createTenantRoundRobin<Place>()
    const all = [...many('a', 5), ...many('b', 1)]
    const taken: string[] = []
    for (let round = 0; round < 6; round++)
      for (const next of turns.inOrder(all).slice(0, 2)) {
        turns.taken(next)
        taken.push(next.id)
      }
    expect(taken.filter(id => id === 'b0')).to.have.length(6)
    expect(taken.filter(id => id !== 'b0').join(' ')).to.equal('a0 a1 a2 a3 a4 a0')
  })

  it('serves a new tenant or subscription last', () => {
    const turns = createTenantRoundRobin<Place>()
    const old = [...many('b', 3), ...many('c', 1)]
    for (const next of turns.inOrder(old).slice(0, 2)) turns.taken(next)
    const order = turns.inOrder([...many('a', 2), ...many('b', 3), place('b9'), ...many('c', 1)])
    expect(ids(order)).to.equal('b1 c0 a0 b2 a1 b0 b9')
  })

  it('serves each, with any number of new ones of another tenant', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(40), { minLength: 10, maxLength: 30 }),
        fc.integer({ min: 2, max: 5 }),
        (added, width) => {
          const turns = createTenantRoundRobin<Place>()
          const waiting = new Map<string, number>([
            ['b0', 0],
            ['b1', 0],
          ])
          let all = [place('b0'), place('b1')]
          for (const [round, count] of added.entries()) {
            all = [...many('a', count, round * 100), ...all]
            for (const next of turns.inOrder(all).slice(0, width)) {
              turns.taken(next)
              if (waiting.has(next.id)) waiting.set(next.id, round)
            }
            for (const [id, last] of waiting) expect(round - last, id).to.be.at.most(3)
          }
        },
      ),
    )
  })

  it('forgets those that are no longer passed', () => {
    const turns = createTenantRoundRobin<Place>()
    for (const next of turns.inOrder(many('a', 3))) turns.taken(next)
    turns.inOrder(many('b', 1))
    expect(ids(turns.inOrder([place('a2'), place('a0'), place('b0')])), 'a2 is a newcomer, like a0').to.equal(
      'b0 a2 a0',
    )
  })
})

describe('the work on topics', () => {
  /** Work that ends when the test resolves it. */
  const stage = () => {
    const work = createTopicWork()
    const open = new Map<string, PromiseWithResolvers<void>>()
    const want = (id: string): void =>
      work.want(place(id), () => {
        const done = Promise.withResolvers<void>()
        open.set(id, done)
        return done.promise.finally(() => open.delete(id))
      })
    const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
    const end = async (id: string, failure?: Error): Promise<void> => {
      if (failure) open.get(id)?.reject(failure)
      else open.get(id)?.resolve()
      await settled()
    }
    const begun = async (): Promise<string> => {
      await settled()
      return [...open.keys()].join(' ')
    }
    return { work, want, end, begun }
  }

  it('is done for several tenants at once, for one of them one at a time', async () => {
    const { want, end, begun } = stage()
    for (const { id } of [...many('a', 3), ...many('b', 2), ...many('c', 1), ...many('d', 1), ...many('e', 1)]) want(id)
    expect(await begun()).to.equal('a0 b0 c0 d0')
    await end('a0')
    expect(await begun(), 'a was there before e').to.equal('b0 c0 d0 a1')
    await end('a1')
    expect(await begun(), 'and has had its turn now').to.equal('b0 c0 d0 e0')
    await end('b0')
    expect(await begun(), 'b waits longer than a, of which nothing is under way').to.equal('c0 d0 e0 b1')
    await end('c0')
    expect(await begun()).to.equal('d0 e0 b1 a2')
  })

  it('is under way until rows are read that can show it', async () => {
    const { work, want, end, begun } = stage()
    want('a0')
    await begun()
    work.rowsAreRead()
    expect(work.isUnderWay('a0')).to.equal(true)
    await end('a0')
    expect(work.isUnderWay('a0')).to.equal(true)
    work.rowsAreRead()
    expect(work.isUnderWay('a0')).to.equal(false)
  })

  it('throws its failure once, and continues with the rest', async () => {
    const { work, want, end, begun } = stage()
    want('a0')
    want('a1')
    await begun()
    await end('a0', new Error('broken'))
    expect(await begun()).to.equal('a1')
    expect(() => work.isUnderWay('a0')).to.throw('broken')
    expect(work.isUnderWay('a0')).to.equal(false)
  })

  it('can be forgotten or replaced before it begins, and stopped', async () => {
    const { work, want, end, begun } = stage()
    want('a0')
    want('a1')
    want('a2')
    work.forget('a1')
    await begun()
    await end('a0')
    expect(await begun()).to.equal('a2')
    want('a3')
    let isStopped = false
    const stopped = work.stop().then(() => (isStopped = true))
    await begun()
    expect(isStopped).to.equal(false)
    await end('a2')
    await stopped
    expect(await begun()).to.equal('')
  })
})
