import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { aPayment, approvedInvoice, type Client, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

const TENANT = 'correlation'
const SUFFIX = '00000000000000000000000000'

describe('the caller’s correlation id', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
  })

  const given = `test.correlation-${newKey()}`

  it('is in the response, the stored events, the published facts and the log', async () => {
    const { invoiceId } = await approvedInvoice(client, 100)
    const headers = { 'x-correlation-id': given, 'idempotency-key': newKey() }
    const paid = await client.post('/payments', aPayment(invoiceId), headers)
    expect(paid.headers.get('x-correlation-id')).to.equal(given)
    const refused = await client.get(`/orders/ord_${SUFFIX}`, headers)
    expect(refused.body.correlation_id).to.equal(given)
    const store = openEventStore({ connectionString: service.addresses.event_store })
    const causes = new Set<unknown>()
    for (const stream of [`payment-${paid.body.id}`, `invoice-${invoiceId}`])
      for await (const { metadata, revision } of store.readStream(stream))
        if (stream.startsWith('payment') || revision > 1n) causes.add(metadata['$correlationId'])
    await store.close()
    expect([...causes]).to.deep.equal([given])
    const fact = await eventually(async () => (await client.get(`/events?subject=${paid.body.id}`)).body.items[0])
    expect(fact).to.include({ correlationid: given, tenantid: TENANT, type: 'payment.succeeded' })
    await eventually(async () => {
      const lines = (await readFile(join(service.dataDir, 'ledger.log'), 'utf8')).split('\n')
      return lines.some(line => line.includes(given) && line.includes('"create_payment"'))
    })
  })
})
