import { expect } from 'chai'
import { approvedInvoice, clientOf, newKey } from '../support/client.ts'
import { startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

describe('while the event store hangs', function () {
  this.timeout(60_000)

  it('a refusal that cannot be recorded is answered with 503, and never with 500', async () => {
    const dataDir = await temporaryDirectory()
    const service = await startProcess(dataDir)
    try {
      const powerful = clientOf(service.api, await service.token())
      const powerless = clientOf(service.api, await service.token({ subject: 'clerk', scopes: ['payments:read'] }))
      const { invoiceId } = await approvedInvoice(powerful)
      const body = { invoice_id: invoiceId, amount: 900, currency: 'USD' }
      const eventStore = service.addresses.pids['eventstore'] ?? 0
      process.kill(eventStore, 'SIGSTOP')
      try {
        const [refused, tooMuch] = await Promise.all([
          powerless.post('/payments', body, { 'idempotency-key': newKey() }),
          powerful.post('/payments', { ...body, amount: 901 }, { 'idempotency-key': newKey() }),
        ])
        expect(refused.body).to.include({ status: 503, code: 'dependency_unavailable' })
        expect(tooMuch.body.code).to.be.oneOf(['dependency_unavailable', 'deadline_exceeded'])
      } finally {
        process.kill(eventStore, 'SIGCONT')
      }
    } finally {
      await service.end('SIGTERM')
      await removeFolder(dataDir)
    }
  })

  it('a key is reported as in progress without a durable event, and resolves afterwards', async () => {
    const dataDir = await temporaryDirectory()
    const service = await startProcess(dataDir)
    try {
      const client = clientOf(service.api, await service.token())
      const { invoiceId } = await approvedInvoice(client)
      const body = { invoice_id: invoiceId, amount: 900, currency: 'USD' }
      const headers = { 'idempotency-key': newKey() }
      const eventStore = service.addresses.pids['eventstore'] ?? 0
      process.kill(eventStore, 'SIGSTOP')
      try {
        const first = client.post('/payments', body, headers)
        await new Promise(resolve => setTimeout(resolve, 100))
        const second = await client.post('/payments', body, headers)
        expect([second.status, second.body.code]).to.deep.equal([409, 'idempotency_in_progress'])
        expect(second.headers.get('retry-after')).to.equal('1')
        expect((await first).body.code).to.equal('deadline_exceeded')
      } finally {
        process.kill(eventStore, 'SIGCONT')
      }
      const answers = []
      for (let tries = 0; tries < 20 && answers.at(-1)?.status !== 201; tries++)
        answers.push(await client.post('/payments', body, headers))
      expect(answers.at(-1)?.status).to.equal(201)
      expect((await client.get(`/invoices/${invoiceId}`)).body).to.include({ state: 'paid', amount_paid: 900 })
    } finally {
      await service.end('SIGTERM')
      await removeFolder(dataDir)
    }
  })
})
