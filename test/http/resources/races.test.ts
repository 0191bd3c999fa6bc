import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { type Answer, anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { isReplay, newKey, pay, recordOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

/** Concurrent requests of which only some, or only one, can succeed. */

const DUE = 10_000
const PAYMENTS = 200
const REQUESTS = 100

describe('concurrent requests', () => {
  let service: TestService
  let client: Client
  let store: EventStore
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'races' }))
    store = openEventStore({ connectionString: service.addresses.event_store })
  })
  after(() => store.close())

  /** The correlation ids of the requests whose refusal is an event of the invoice. */
  const recordedIn = async (invoiceId: string): Promise<Set<unknown>> => {
    const actual = new Set<unknown>()
    for await (const { type, metadata } of store.readStream(`invoice-${invoiceId}`))
      if (type === 'PaymentRefused') actual.add(metadata['$correlationId'])
    return actual
  }

  /** The paid amount of the invoice at each of its revisions: never more than is due. */
  const everPaid = async (invoiceId: string): Promise<number[]> => {
    const paid: number[] = [0]
    for await (const { type, data } of store.readStream(`invoice-${invoiceId}`))
      if (type === 'PaymentApplied') paid.push((paid.at(-1) ?? 0) + Number(data['amount']))
    return paid
  }

  for (const [what, amountOf] of [
    ['of different amounts', (index: number) => 190 + index],
    ['of the whole amount', () => DUE],
    ['that fit exactly forty times', () => DUE / 40],
  ] as const)
    it(`${PAYMENTS} payments ${what} succeed up to the amount due, and each replay has the same response`, async () => {
      const { invoiceId } = await approvedInvoice(client, DUE)
      const tries = Array.from({ length: PAYMENTS }, (_, index) => ({ key: newKey(), amount: amountOf(index) }))
      const once = () => Promise.all(tries.map(({ key, amount }) => pay(client, aPayment(invoiceId, { amount }), key)))
      // A busy machine may need longer than a request waits: 202, and the same key has the outcome later.
      const pending = new Set<number>()
      const outcomeOf = async (answer: Answer, index: number): Promise<Answer> => {
        const { key = '', amount = 0 } = tries[index] ?? {}
        if (answer.status !== 202) return answer
        pending.add(index)
        return eventually(async () => {
          const again = await pay(client, aPayment(invoiceId, { amount }), key)
          return again.status !== 202 && again
        })
      }
      const answers = await Promise.all((await once()).map(outcomeOf))
      let paid = 0
      for (const [index, answer] of answers.entries()) {
        expect(isReplay(answer)).to.equal(pending.has(index))
        if (answer.status === 201) paid += tries[index]?.amount ?? 0
        else expect(answer.body, answer.text).to.include({ status: 409, code: 'payment_exceeds_due' })
      }
      expect((await client.get(`/invoices/${invoiceId}`)).body).to.include({ amount_paid: paid, amount_pending: 0 })
      expect(paid).to.be.at.most(DUE)
      for (const [index, { status }] of answers.entries())
        if (status === 409) expect(tries[index]?.amount, 'it would have fitted').to.be.above(DUE - paid)
      const ever = await everPaid(invoiceId)
      expect([Math.max(...ever), ever.at(-1)]).to.deep.equal([paid, paid])

      const recorded = await recordedIn(invoiceId)
      const second = await once()
      for (const again of [second, await once()])
        for (const [index, answer] of again.entries()) {
          const first = answers[index] as Answer
          expect(answer.status, first.text).to.equal(first.status)
          const isRecorded = first.status === 201 || pending.has(index) || recorded.has(first.body.correlation_id)
          expect(isReplay(answer)).to.equal(isRecorded)
          // A refusal before the idempotency record is decided anew, and may name another amount; a recorded one is repeated.
          if (isRecorded) expect(recordOf(answer)).to.deep.equal(recordOf(first))
          else expect(answer.body).to.include({ code: 'payment_exceeds_due' })
        }
      expect(recorded.size, 'no refusal is in the log, so none of the payments raced').to.be.greaterThan(0)
      expect(await everPaid(invoiceId)).to.deep.equal(ever)
    })

  const order = async (): Promise<{ path: string; etag: string; id: string }> => {
    const answer = await client.post('/orders', anOrder())
    return { path: `/orders/${answer.body.id}`, etag: answer.headers.get('etag') ?? '', id: answer.body.id }
  }
  const oneOf = (answers: readonly Answer[]): Answer => {
    const [won, ...others] = answers.filter(({ status }) => status === 200)
    if (won === undefined) throw new Error(`No request succeeded: ${answers[0]?.text}`)
    expect(others).to.deep.equal([])
    for (const lost of answers) {
      if (lost === won) continue
      expect(lost.body).to.include({ status: 412, code: 'precondition_failed' })
      expect(lost.headers.get('etag'), 'the current one').to.equal(won.headers.get('etag'))
    }
    return won
  }

  it('of two invoices under one key from two orders one is raised, and the other order stays open', async () => {
    for (let round = 0; round < 10; round += 1) {
      const orders = [await order(), await order()]
      const headers = { 'idempotency-key': newKey() }
      const raise = ({ id }: { id: string }) => client.post('/invoices', { order_id: id }, headers)
      const answers = await Promise.all(orders.map(raise))
      expect(answers.map(({ status }) => status)).to.have.members([201, 422])
      for (const [index, answer] of answers.entries()) {
        const state = (await client.get(orders[index]?.path ?? '')).body.state
        expect(state).to.equal(answer.status === 201 ? 'invoiced' : 'open')
        if (answer.status === 201) expect(answer.body.order_id).to.equal(orders[index]?.id)
        else expect(answer.body.code).to.equal('idempotency_key_reused')
      }
    }
  })

  it(`of ${REQUESTS} patches with one ETag one is applied`, async () => {
    const { path, etag } = await order()
    const headers = { 'if-match': etag, 'content-type': 'application/merge-patch+json' }
    const answers = await Promise.all(
      Array.from({ length: REQUESTS }, (_, index) =>
        client.request('PATCH', path, { body: { description: `v${index}` }, headers }),
      ),
    )
    const won = oneOf(answers)
    const now = await client.get(path)
    expect(now.body).to.include({ version: 1, description: won.body.description })
    expect(now.text).to.equal(won.text)
  })

  it(`of ${REQUESTS} approvals with one ETag one takes effect`, async () => {
    const invoice = await client.post('/invoices', { order_id: (await order()).id })
    const headers = { 'if-match': invoice.headers.get('etag') ?? '' }
    const path = `/invoices/${invoice.body.id}`
    const approve = () => client.post(`${path}:approve`, {}, headers)
    const won = oneOf(await Promise.all(Array.from({ length: REQUESTS }, approve)))
    expect((await client.get(path)).text).to.equal(won.text)
    expect(won.body).to.include({ state: 'approved', version: 1 })
  })
})
