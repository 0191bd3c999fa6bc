import { expect } from 'chai'
import { derivedId } from '../../../src/lib/identifiers.ts'
import { approvedInvoice, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { emptyFolder, ledger, tidyUp } from './fixtures.ts'

const TENANT = 'operators'

describe('npm run ledger -- streams show', () => {
  let service: TestService
  let invoiceId: string
  let orderId: string
  let payment: { id: string; correlation: string }

  before(async () => {
    service = await sharedService()
    const client = clientOf(service.api, await service.token({ tenant: TENANT }))
    ;({ invoiceId, orderId } = await approvedInvoice(client, 700))
    const body = { invoice_id: invoiceId, amount: 700, currency: 'USD', reference: 'audited' }
    const paid = await client.post('/payments', body, { 'idempotency-key': newKey() })
    payment = { id: paid.body.id, correlation: paid.headers.get('x-correlation-id') ?? '' }
  })

  after(tidyUp)

  const events = async (id: string) => JSON.parse((await ledger(['streams', 'show', id, '--json'])).stdout)

  it('prints the events of an invoice with subject, time, authority and correlation id', async () => {
    const shown = await events(invoiceId)
    expect(shown).to.include({ stream: `invoice-${invoiceId}`, id: invoiceId })
    const types = shown.events.map(({ type, revision }: { type: string; revision: string }) => `${revision} ${type}`)
    expect(types).to.deep.equal(['0 InvoiceRaised', '1 InvoiceApproved', '2 PaymentApplied', '3 InvoicePaid'])
    expect(shown.events[2]).to.deep.include({
      tenant: TENANT,
      subject: 'tester',
      client: 'tester',
      authority: 'payments:write',
      correlation_id: payment.correlation,
      schema_version: 1,
      data: { payment_id: payment.id, amount: 700 },
    })
    const { at, stored_at } = shown.events[2]
    expect(Math.abs(Date.parse(stored_at) - Date.parse(at))).to.be.below(30_000)
  })

  it('finds the streams of orders and payments by their ids', async () => {
    const typesOf = async (id: string) => (await events(id)).events.map(({ type }: { type: string }) => type)
    expect((await typesOf(orderId)).slice(0, 2)).to.deep.equal(['OrderCreated', 'OrderInvoiced'])
    expect(await typesOf(payment.id)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
  })

  it('replays a payment step by step, and records both looks', async () => {
    const { code, stdout } = await ledger(['replay', payment.id, '--json'])
    expect(code).to.equal(0)
    const steps = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(steps.map(({ revision, type }) => [revision, type])).to.deep.equal([
      ['0', 'PaymentInitiated'],
      ['1', 'PaymentSucceeded'],
    ])
    const client = clientOf(service.api, await service.token({ tenant: TENANT }))
    const { body } = await client.get(`/payments/${payment.id}`)
    expect(Object.keys(steps[1].state), 'the members of the resource').to.have.members(Object.keys(body))
    expect(steps[1].state).to.include({ state: 'succeeded', amount: body.amount, updated_at: body.updated_at })
    expect(steps[1]).to.include({ subject: 'tester', authority: 'payments:write' })
    const history = (await client.get(`/payments/${payment.id}/history`)).body.items
    expect(steps.map(({ at }) => at)).to.deep.equal(history.map(({ at }: { at: string }) => at))
    expect((await ledger(['replay', payment.id])).stdout).to.match(/^ {3}who {2}tester, by payments:write$/m)
    expect((await ledger(['replay', payment.id, '--at', '0', '--json'])).stdout.trimEnd().split('\n')).to.have.length(1)
    await eventually(async () => {
      const { items } = (await client.get(`/audit-records?resource=${payment.id}&limit=100`)).body
      const operations = items.map(({ operation }: { operation: string }) => operation)
      return operations.includes('show_stream') && operations.includes('replay_stream')
    })
  })

  it('shows and replays no secret of the service', async () => {
    const id = derivedId('sec', 'ids of idempotency keys')
    const shown = await events(id)
    expect(shown.events.map(({ data }: { data: object }) => data)).to.deep.equal([{ redacted: true }])
    expect((await ledger(['replay', id])).stderr).to.equal('Streams with secrets are not replayed.\n')
  })

  it('prints them as text', async () => {
    const { code, stdout } = await ledger(['streams', 'show', payment.id])
    expect(code).to.equal(0)
    expect(stdout).to.match(new RegExp(`^payment-${payment.id}, 2 events, tenant ${TENANT}\n`))
    expect(stdout).to.match(/^0 {2}\d{4}-\S+Z {2}PaymentInitiated\n {3}who +tester, by payments:write\n/m)
    expect(stdout).to.include(`correlation  ${payment.correlation}, caused by `)
    expect(stdout).to.include('     "amount": 700,\n')
  })

  for (const [name, id, sentence] of [
    ['an unknown id', 'inv_00000000000000000000000000', /^There is no stream invoice-inv_0{26} in the store/],
    ['a malformed id', 'inv_short', /^"inv_short" is not a stream id\. .*: ord_…, inv_…, pay_…, ref_…/],
    ['an unknown prefix', 'foo_00000000000000000000000000', /is not a stream id/],
  ] as const)
    it(`refuses ${name}`, async () => {
      const { code, stdout, stderr } = await ledger(['streams', 'show', id])
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(stderr).to.match(sentence)
    })

  it('prints how to start the service when none runs', async () => {
    const folder = await emptyFolder()
    const { code, stderr } = await ledger(['streams', 'show', invoiceId], folder)
    expect(code).to.equal(2)
    expect(stderr)
      .to.match(/^No service is running on .*npm start/)
      .and.to.include(folder)
  })

  it('reads the store that EVENTSTORE_URL names', async () => {
    const env = { EVENTSTORE_URL: service.addresses.event_store }
    const { code, stdout } = await ledger(['streams', 'show', payment.id], await emptyFolder(), env)
    expect(code).to.equal(0)
    expect(stdout).to.include('PaymentSucceeded')
  })
})
