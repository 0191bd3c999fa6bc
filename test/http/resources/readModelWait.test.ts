import { expect } from 'chai'
import { clientOf } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { startVariant } from '../../support/serviceVariants.ts'

const HOUR_MS = 60 * 60 * 1000
const FAR = '9'.repeat(15)

describe('the wait for a read model', function () {
  this.timeout(30_000)

  it('ends in time while the wall clock is set back all the time', async () => {
    let nowMs = Date.now()
    const world = { now: () => (nowMs -= HOUR_MS) }
    const variant = await startVariant(await sharedService(), { world })
    try {
      const headers = { 'if-min-position': FAR, prefer: 'wait=1' }
      const answer = await clientOf(variant.api).get('/orders', headers)
      expect(answer.body).to.include({ status: 503, code: 'projection_behind' })
    } finally {
      await variant.close()
    }
  })
})
