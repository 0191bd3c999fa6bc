import { expect } from 'chai'
import { actual } from './bugs.ts'
import { planEntryOf } from './plan.ts'
import { type Engine, openEngine } from './postgres.ts'
import { simulate } from './simulate.ts'

describe('a defect that the simulation has found does not reappear:', () => {
  let engine: Engine

  before(async () => {
    engine = await openEngine()
  })

  for (const { bug, seeds, plan } of actual)
    it(bug, async () => {
      for (const seed of seeds) {
        const { violations } = await simulate(engine, { seed, plan: plan.map(planEntryOf) })
        const broken = violations.map(({ promise, detail }) => `${promise}: ${detail}`)
        expect(broken.join('\n'), `seed ${seed}`).to.equal('')
      }
    })
})
