import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { clientOf, inParallel } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { caller, startVariant, TENANT } from '../../support/serviceVariants.ts'

const REFUSED = 300

describe('repeated denials of a caller', () => {
  it('are recorded in a few records whose counts add up to all denials', async () => {
    const service = await sharedService()
    const store = openEventStore({ connectionString: service.addresses.event_store })
    const authenticate = async () => ({ ...caller, subject: 'denied', scopes: new Set<string>() })
    const variant = await startVariant(service, { authenticate })
    const client = clientOf(variant.api)
    const before = await store.head()
    const answers = await inParallel(20, Array.from({ length: REFUSED }), () =>
      client.post('/exports', { resource: 'orders', format: 'csv' }),
    )
    expect(new Set(answers.map(({ body }) => body.code))).to.deep.equal(new Set(['insufficient_scope']))
    // Counted denials are recorded at the latest when the service ends.
    await variant.close()
    const auditor = clientOf(service.api, await service.token({ tenant: TENANT }))
    const headers = { 'if-min-position': String(await store.head()), prefer: 'wait=8' }
    const { body } = await auditor.get('/audit-records?subject=denied&limit=100', headers)
    const records: { count: number; position: string }[] = body.items
    const ours = records.filter(({ position }) => BigInt(position) > before)
    await store.close()
    expect(ours.length).to.be.within(21, 40)
    expect(ours.reduce((sum, { count }) => sum + count, 0)).to.equal(REFUSED)
  })
})
