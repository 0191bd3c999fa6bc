import { expect } from 'chai'
import { approvedInvoice, clientOf, newKey } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

describe('while the event store hangs', () => {
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
        const answers = await Promise.all([
          client.post('/payments', body, headers),
          client.post('/payments', body, headers),
        ])
        // The request that arrives first is the one whose append hangs.
        expect(answers.map(({ body: { code } }) => code)).to.have.members([
          'deadline_exceeded',
          'idempotency_in_progress',
        ])
        const refused = answers.find(({ status }) => status === 409)
        expect(refused?.headers.get('retry-after')).to.equal('1')
      } finally {
        process.kill(eventStore, 'SIGCONT')
      }
      await eventually(async () => (await client.post('/payments', body, headers)).status === 201)
      expect((await client.get(`/invoices/${invoiceId}`)).body).to.include({ state: 'paid', amount_paid: 900 })
    } finally {
      await service.end('SIGTERM')
      await removeFolder(dataDir)
    }
  })
})
