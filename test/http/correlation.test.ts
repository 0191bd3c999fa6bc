import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb.ts'
import { aPayment, approvedInvoice, type Client, clientOf, eventually, newKey } from '../support/client.ts'
import { sharedService, type TestService } from '../support/service.ts'

const TENANT = 'correlation'
const SUFFIX = '00000000000000000000000000'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('the caller’s correlation id', function () {
  this.timeout(30_000)
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
  })

  const given = `test.correlation-${newKey()}`

  it('goes into the answer, the stored events, the published facts and the log', async () => {
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

  it('is replaced by a new one where it is none', async () => {
    const made = new Set<string>()
    for (const bad of ['short', 'émile-émile']) {
      const answer = await client.get(`/orders/ord_${SUFFIX}`, { 'x-correlation-id': bad })
      expect(answer.headers.get('x-correlation-id'), bad).to.match(UUID)
      expect(answer.body.correlation_id).to.equal(answer.headers.get('x-correlation-id'))
      made.add(answer.body.correlation_id)
    }
    expect(made.size).to.equal(2)
    for (const good of ['12345678', 'x'.repeat(128), 'A.b_c-9.'])
      expect((await client.get('/livez', { 'x-correlation-id': good })).headers.get('x-correlation-id')).to.equal(good)
  })
})
