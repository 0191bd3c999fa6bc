import { expect } from 'chai'
import { EXPORT_FORMATS } from '../../streams/operation/index.ts'
import { GROWTH_MAX_MIB, openStage, type Stage } from '../support/exportsUnderFire.ts'

const PAYMENTS = 100_000

describe(`an export of ${PAYMENTS} payments`, function () {
  this.timeout(600_000)
  let stage: Stage
  before(async () => {
    stage = await openStage(PAYMENTS)
  })
  after(() => stage?.close())

  // The first of each format warms the worker up: what a program needs once is no growth.
  for (const format of EXPORT_FORMATS)
    it(`as ${format} is what the streams say, and takes no more memory the second time`, async () => {
      const [first, second] = [await stage.growthOf(format), await stage.growthOf(format)]
      process.stdout.write(`    ${format}: +${first.toFixed(1)} MiB, then +${second.toFixed(1)} MiB\n`)
      expect(second).to.be.lessThan(GROWTH_MAX_MIB)
    })

  for (const format of EXPORT_FORMATS)
    it(`as ${format} is one right file, though its worker is killed twice in the middle`, () =>
      stage.killedInTheMiddle(format, 2))
})
