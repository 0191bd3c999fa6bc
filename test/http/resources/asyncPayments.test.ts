import { expect } from 'chai'
import { approvedInvoice, type Client, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'

describe('a payment with Prefer: respond-async', () => {
  let client: Client
  before(async () => {
    const service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'async' }))
  })

  const pay = async (prefer: string, key = newKey()) => {
    const { invoiceId } = await approvedInvoice(client)
    const body = { invoice_id: invoiceId, amount: 900, currency: 'USD' }
    return { invoiceId, key, body, answer: await client.post('/payments', body, { 'idempotency-key': key, prefer }) }
  }

  it('is durable, answered with its operation, and is completed', async () => {
    const { answer, invoiceId, key, body } = await pay('respond-async')
    expect(answer.status).to.equal(202)
    expect(answer.headers.get('preference-applied')).to.equal('respond-async')
    expect(answer.body).to.deep.include({ kind: 'create_payment', state: 'pending', result: null })
    const location = answer.headers.get('location') ?? ''
    const operation = await eventually(async () => {
      const { body: read } = await client.get(location)
      return read.state !== 'pending' && read
    })
    expect(operation.state).to.equal('succeeded')
    const payment = await client.get(operation.result.href)
    expect(payment.body).to.include({ state: 'succeeded', invoice_id: invoiceId })
    const replayed = await client.post('/payments', body, { 'idempotency-key': key })
    expect([replayed.status, replayed.text]).to.deep.equal([201, payment.text])
  })

  it('is answered with its outcome within the wait that the caller prefers', async () => {
    const waited = await pay('respond-async, wait=5')
    expect(waited.answer.status).to.equal(201)
    const plain = await pay('handling=lenient')
    expect([plain.answer.status, plain.answer.headers.get('preference-applied')]).to.deep.equal([201, null])
  })
})
