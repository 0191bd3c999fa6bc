import { expect } from 'chai'
import { createTopicWork } from '../../src/processes/subscriptions/topicWork.ts'

type Subscription = { readonly id: string; readonly tenant_id: string }

const subscription = (id: string): Subscription => ({ id, tenant_id: id.slice(0, 1) })
const many = (tenant: string, count: number): Subscription[] =>
  Array.from({ length: count }, (_, n) => subscription(`${tenant}${n}`))

describe('the work on topics', () => {
  /** Work that ends when the test resolves it. */
  const createHarness = () => {
    const work = createTopicWork()
    const open = new Map<string, PromiseWithResolvers<void>>()
    const want = (id: string): void =>
      work.want(subscription(id), () => {
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

  it('is done for several tenants concurrently, and for each tenant one after the other', async () => {
    const { want, end, begun } = createHarness()
    for (const { id } of [...many('a', 3), ...many('b', 2), ...many('c', 1), ...many('d', 1), ...many('e', 1)]) want(id)
    expect(await begun()).to.equal('a0 b0 c0 d0')
    await end('a0')
    expect(await begun(), 'a was there before e').to.equal('b0 c0 d0 a1')
    await end('a1')
    expect(await begun(), 'and has had its turn now').to.equal('b0 c0 d0 e0')
    await end('b0')
    expect(await begun(), 'b has waited longer than a').to.equal('c0 d0 e0 b1')
    await end('c0')
    expect(await begun()).to.equal('d0 e0 b1 a2')
  })

  it('is under way until rows are read that can reflect it', async () => {
    const { work, want, end, begun } = createHarness()
    want('a0')
    await begun()
    work.beforeRowsAreRead()
    expect(work.mayChangeRows('a0')).to.equal(true)
    await end('a0')
    expect(work.mayChangeRows('a0')).to.equal(true)
    work.beforeRowsAreRead()
    expect(work.mayChangeRows('a0')).to.equal(false)
  })

  it('throws its failure once, and continues with the rest', async () => {
    const { work, want, end, begun } = createHarness()
    want('a0')
    want('a1')
    await begun()
    await end('a0', new Error('broken'))
    expect(await begun()).to.equal('a1')
    expect(() => work.mayChangeRows('a0')).to.throw('broken')
    expect(work.mayChangeRows('a0')).to.equal(false)
  })

  it('can be dropped before it begins, and stopped', async () => {
    const { work, want, end, begun } = createHarness()
    want('a0')
    want('a1')
    want('a2')
    work.drop('a1')
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
