import { expect } from 'chai'
import { found } from './found.ts'
import { planEntryOf } from './plan.ts'
import { type Engine, openEngine } from './postgres.ts'
import { simulate } from './simulate.ts'

const START_MAX_MS = 60_000
const RUN_MAX_MS = 30_000

describe('a defect that the simulation has found does not reappear:', function () {
  this.timeout(RUN_MAX_MS)
  let engine: Engine

  before(async function () {
    this.timeout(START_MAX_MS)
    engine = await openEngine()
  })

  for (const { bug, seeds, plan } of found)
    it(bug, async () => {
      for (const seed of seeds) {
        const { violations } = await simulate(engine, { seed, plan: plan.map(planEntryOf) })
        const broken = violations.map(({ promise, detail }) => `${promise}: ${detail}`)
        expect(broken.join('\n'), `seed ${seed}`).to.equal('')
      }
    })
})
