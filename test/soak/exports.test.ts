import { expect } from 'chai'
import { EXPORT_FORMATS } from '../../streams/operation/index.ts'
import { GROWTH_MAX_MIB, openStage, type Stage } from '../support/exportsUnderFire.ts'

const PAYMENTS = 100_000

describe(`an export of ${PAYMENTS} payments`, function () {
  this.timeout(600_000)
  let stage: Stage
  before(async () => {
    stage = await openStage(PAYMENTS)
    // The engine lets its young generation grow as garbage comes faster, up to a limit of its own: that is once.
    for (const format of EXPORT_FORMATS) await stage.growthOf(format)
  })
  after(() => stage?.close())

  for (const format of EXPORT_FORMATS)
    it(`as ${format} is what the streams say, and takes no memory for it`, async () => {
      const growth = await stage.growthOf(format)
      process.stdout.write(`    the worker grew by ${growth.toFixed(1)} MiB\n`)
      expect(growth).to.be.lessThan(GROWTH_MAX_MIB)
    })

  for (const format of EXPORT_FORMATS)
    it(`as ${format} is one right file, though its worker is killed twice in the middle`, () =>
      stage.killedInTheMiddle(format, 2))
})
