import { availableParallelism } from 'node:os'
import { expect } from 'chai'
import { neverHappened } from './faults.ts'
import { runSeeds } from './fleet.ts'
import { openEngine } from './postgres.ts'
import { simulate } from './simulate.ts'

const SEEDS = 500
const MANY_MAX_MS = 600_000
const ONE_MAX_MS = 60_000

describe('the simulation', () => {
  it(`keeps every promise under ${SEEDS} seeds`, async function () {
    this.timeout(MANY_MAX_MS)
    const jobs = Array.from({ length: SEEDS }, (_, index) => ({ seed: index + 1 }))
    const exercised = new Map<string, number>()
    for await (const { seed, failure, counts } of runSeeds(jobs, availableParallelism())) {
      const broken = failure?.violations.map(({ promise, detail }) => `${promise}: ${detail}`) ?? []
      expect(broken, `npm run simulate -- --seeds 1 --from ${seed}`).to.deep.equal([])
      for (const [name, count] of counts) exercised.set(name, (exercised.get(name) ?? 0) + count)
    }
    expect(neverHappened(exercised), 'a fault that never comes is a defect of the simulation').to.deep.equal([])
    expect([...exercised.keys()]).to.include.members(['create_payment 201', 'create_payment 202', 'refund_payment 200'])
  })

  it('plays the same history for the same seed, to the byte', async function () {
    this.timeout(ONE_MAX_MS)
    const engine = await openEngine()
    const first = await simulate(engine, { seed: 42 })
    await simulate(engine, { seed: 43 })
    const second = await simulate(engine, { seed: 42 })
    expect(second.history.lines).to.deep.equal(first.history.lines)
  })
})
