import { expect } from 'chai'
import { EXPORT_FORMATS } from '../../streams/operation/index.ts'
import { GROWTH_MAX_MIB, openExportWorker, type ExportWorker } from '../support/exportWorker.ts'

const PAYMENTS = 100_000

describe(`an export of ${PAYMENTS} payments`, function () {
  this.timeout(600_000)
  let worker: ExportWorker
  before(async () => {
    worker = await openExportWorker(PAYMENTS)
    // The young generation of V8 grows once, up to a limit, with the allocation rate.
    for (const format of EXPORT_FORMATS) await worker.growthOf(format)
  })
  after(() => worker?.close())

  for (const format of EXPORT_FORMATS)
    it(`as ${format} equals the streams, with constant memory`, async () => {
      const growth = await worker.growthOf(format)
      process.stdout.write(`    the worker grew by ${growth.toFixed(1)} MiB\n`)
      expect(growth).to.be.lessThan(GROWTH_MAX_MIB)
    })

  for (const format of EXPORT_FORMATS)
    it(`as ${format} is one valid file, also when its worker is killed twice before the end`, () =>
      worker.killedInTheMiddle(format, 2))
})
