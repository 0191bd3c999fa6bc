import { expect } from 'chai'
import { anOrder, clientOf } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { startVariant } from '../../support/serviceVariants.ts'

const HOUR_MS = 60 * 60 * 1000
const FAR = '9'.repeat(15)

describe('the wait for a read model', () => {
  it('is as long as the caller prefers, and ends with 503 when the position is not reached', async () => {
    const service = await sharedService()
    const client = clientOf(service.api, await service.token({ tenant: 'read-model-wait' }))
    const order = await client.post('/orders', anOrder())
    const position = order.headers.get('ledger-position') ?? ''
    const waited = await client.get('/orders?limit=1', { 'if-min-position': position, prefer: 'wait=5' })
    expect([waited.body.items[0].id, waited.headers.get('preference-applied')]).to.deep.equal([order.body.id, 'wait=5'])
    const future = await client.get('/orders', { 'if-min-position': '999999999999' })
    expect([future.status, future.body.code]).to.deep.equal([503, 'projection_behind'])
    expect((await client.get('/orders', { 'if-min-position': 'x' })).body.code).to.equal('precondition_invalid')
  })

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
