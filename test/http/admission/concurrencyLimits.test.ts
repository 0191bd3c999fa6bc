import { expect } from 'chai'
import { createConcurrencyLimits } from '../../../src/http/admission/concurrencyLimits.ts'
import { Problem } from '../../../src/http/problems/problemCatalogue.ts'
import { readConfig } from '../../../src/settings/config.ts'
import { DEFAULT_CONCURRENCY_LIMITS } from '../../../src/settings/limits.ts'
import { caller } from '../../support/serviceVariants.ts'

const as = (client: string, tenant = caller.tenant) => ({ ...caller, client, tenant })
const detailOf = (taking: Promise<unknown>): Promise<unknown> =>
  taking.then(
    () => 'taken',
    (error: unknown) => (error instanceof Problem ? error.extras.detail : error),
  )

describe('concurrency limits', () => {
  const limits = createConcurrencyLimits({ ...DEFAULT_CONCURRENCY_LIMITS, streams: 2, tenant_streams: 3 })

  it('hold for a caller and for all callers of its tenant, and the problem says which it was', async () => {
    const held = [await limits.take('streams', as('one')), await limits.take('streams', as('one'))]
    expect(await detailOf(limits.take('streams', as('one')))).to.match(/^You have 2 event streams open/)
    held.push(await limits.take('streams', as('two')))
    expect(await detailOf(limits.take('streams', as('three')))).to.match(/^Your tenant has 3 event streams open/)
    held.push(await limits.take('streams', as('one', 'another-tenant')))
    for (const release of held) release()
  })

  it('take nothing from a caller whose tenant has too many', async () => {
    const held = await Promise.all(['one', 'two', 'three'].map(client => limits.take('streams', as(client))))
    for (let times = 0; times < 3; times += 1) await detailOf(limits.take('streams', as('four')))
    held.pop()?.()
    expect(await detailOf(limits.take('streams', as('four')))).to.equal('taken')
  })

  it('are separate for each kind', async () => {
    expect(await detailOf(limits.take('waits', as('one')))).to.equal('taken')
  })

  it('are set by CONCURRENCY_LIMITS, whose errors name the expected form', () => {
    const { concurrencyLimits } = readConfig({ CONCURRENCY_LIMITS: 'streams=5, tenant_waits=9' })
    expect(concurrencyLimits).to.deep.equal({ ...DEFAULT_CONCURRENCY_LIMITS, streams: 5, tenant_waits: 9 })
    for (const text of ['streams', 'stream=5', 'streams=-1', 'streams=5/60'])
      expect(() => readConfig({ CONCURRENCY_LIMITS: text }), text).to.throw(
        /CONCURRENCY_LIMITS=.* is not valid: .* does not have the form policy=number, such as streams=20. A policy is one of streams, tenant_streams/,
      )
  })
})
