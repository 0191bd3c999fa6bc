import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { type Answer, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { isReplay, newKey, pay, recordOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { askFor, download, fetched } from '../../support/exportSteps.ts'
import { writtenBy } from '../../support/service.ts'
import { usePersonalTexts } from './personalTextFixtures.ts'

const TENANT = 'payment-references'
const TOKEN = /^prf_[0-9A-HJKMNP-TV-Z]{26}$/

describe('the reference of a payment', () => {
  const { parts, startProcess, eventsOf, erase } = usePersonalTexts(TENANT, 'payment_reference')
  let { service, store, database, switched } = parts
  let client: Client
  /** Of another process, which has seen nothing yet, on the same database. */
  let elsewhere: Client
  let invoiceId: string
  before(async () => {
    ;({ service, store, database, switched } = parts)
    client = clientOf((await startProcess()).api)
    elsewhere = clientOf((await startProcess()).api)
    invoiceId = (await approvedInvoice(client, 1_000_000)).invoiceId
  })

  const aReference = (): string => `INV Jane Doe ${randomUUID()}`
  const paid = (reference: string, key = newKey(), by = client): Promise<Answer> =>
    pay(by, aPayment(invoiceId, { amount: 10, reference }), key)
  const tokenOf = async (id: string): Promise<unknown> => (await eventsOf(`payment-${id}`))[0]?.data['reference']
  const untilErased = (id: string) =>
    eventually(async () => (await client.get(`/payments/${id}`)).body.reference === null)
  const response = async (text: string, position: string): Promise<readonly string[]> => {
    const headers = { 'if-min-position': position, prefer: 'wait=9' }
    const list = await client.get(`/payments?reference=${encodeURIComponent(text)}`, headers)
    expect(list.status, list.text).to.equal(200)
    return list.body.items.map((item: Answer['body']) => `${item.id} ${item.reference}`)
  }
  const storedTexts = (text: string) => database.sql('select token from personal_texts where text = $1', [text])

  it('is shown to readers and found by the filter, and is in no event, fact or name of a stream', async () => {
    const [text, key] = [aReference(), newKey()]
    const answer = await paid(text, key)
    const { id } = answer.body
    expect([answer.status, answer.body.reference]).to.deep.equal([201, text])
    expect(await tokenOf(id)).to.match(TOKEN)
    expect(JSON.stringify((await eventsOf(`payment-${id}`)).map(({ data }) => data))).not.to.include(text)
    expect((await client.get(`/payments/${id}`)).body).to.deep.equal(answer.body)
    expect(recordOf(await paid(text, key))).to.deep.equal(recordOf(answer))
    expect(recordOf(await paid(text, key, elsewhere))).to.deep.equal(recordOf(answer))
    const position = answer.headers.get('ledger-position') ?? ''
    expect(await response(text, position)).to.deep.equal([`${id} ${text}`])
    expect(await response(aReference(), position)).to.deep.equal([])
    expect(await response(String(await tokenOf(id)), position), 'a token is no reference').to.deep.equal([])
    const history = await client.get(`/payments/${id}/history`)
    expect(history.body.items.map((item: Answer['body']) => item.data.reference)).to.deep.equal([text, text])
    expect(history.text).not.to.include('reference_stream')
    const fact = await eventually(async () => {
      const page = await client.get(`/events?subject=${id}`)
      return page.body.items[0]
    })
    expect(fact.data.reference).to.equal(await tokenOf(id))
  })

  it('is unique: a second payment is refused with the id of the first, in this process and in another', async () => {
    const text = aReference()
    const first = await paid(text)
    for (const by of [client, elsewhere]) {
      const second = await paid(text, newKey(), by)
      expect([second.status, second.body.code]).to.deep.equal([409, 'payment_reference_conflict'])
      expect(second.text).to.include(first.body.id)
    }
    const others = clientOf(service.api, await service.token({ tenant: 'other-payment-references' }))
    const { invoiceId: theirs } = await approvedInvoice(others)
    expect((await pay(others, aPayment(theirs, { reference: text }))).status).to.equal(201)
  })

  it('belongs to one of many payments that ask for it at once', async () => {
    const text = aReference()
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => paid(text, newKey(), n % 2 === 0 ? client : elsewhere)),
    )
    const made = answers.filter(({ status }) => status === 201)
    const codes = answers.filter(({ status }) => status !== 201).map(({ body }) => body.code)
    expect(made.length, answers.map(answer => answer.text).join('\n')).to.equal(1)
    expect(new Set(codes)).to.deep.equal(new Set(['payment_reference_conflict']))
  })

  it('is in no event of an export that it filters, and in its manifest', async () => {
    const text = aReference()
    const { body } = await paid(text)
    const request = { resource: 'payments', format: 'jsonl', filters: { reference: text } } as const
    const key = newKey()
    const reply = await client.post('/exports', request, { 'idempotency-key': key })
    const { id } = reply.body
    const owner = clientOf(service.api, await service.token({ tenant: TENANT }))
    const { manifest, rows } = await fetched(service, owner, { id, tenant: TENANT })
    expect(manifest.filters).to.deep.equal({ reference: text })
    expect(rows.map(row => [Reflect.get(row, 'id'), Reflect.get(row, 'reference')])).to.deep.equal([[body.id, text]])
    expect(JSON.stringify((await eventsOf(`operation-${id}`)).map(({ data }) => data))).not.to.include(text)
    switched.state.isDown = true
    const repeated = await elsewhere.post('/exports', request, { 'idempotency-key': key })
    // The key belongs to the caller, who is the same in both processes.
    expect([repeated.status, isReplay(repeated), repeated.body.id]).to.deep.equal([202, true, id])
    switched.state.isDown = false
    await erase(text)
    expect((await download(service, id, TENANT)).status).to.equal(410)
    await eventually(async () => (await owner.get(`/operations/${id}`)).body.state === 'expired')
    const other410 = await askFor(owner, { resource: 'payments', format: 'csv' })
    const after = await fetched(service, owner, { id: other410, tenant: TENANT })
    expect(after.bytes.toString()).not.to.include(text)
  })

  it('is not stored by the filter of an export, which then finds nothing', async () => {
    const text = aReference()
    const id = await askFor(client, { resource: 'payments', format: 'jsonl', filters: { reference: text } })
    const owner = clientOf(service.api, await service.token({ tenant: TENANT }))
    const { rows } = await fetched(service, owner, { id, tenant: TENANT })
    expect(rows).to.deep.equal([])
    expect(await storedTexts(text)).to.deep.equal([])
    expect(JSON.stringify((await eventsOf(`operation-${id}`)).map(({ data }) => data))).not.to.include(text)
  })

  it('is null after its erasure, stays taken, and its key replays without it', async () => {
    const [text, key] = [aReference(), newKey()]
    const answer = await paid(text, key)
    const { id } = answer.body
    const { invoiceId: invoice } = { invoiceId }
    const balance = (await client.get(`/invoices/${invoice}`)).body.amount_paid
    expect((await erase(text)).erased).to.deep.equal([await tokenOf(id)])
    await untilErased(id)
    const read = await client.get(`/payments/${id}`, { 'if-none-match': answer.headers.get('etag') ?? '' })
    expect([read.status, read.body]).to.deep.equal([200, { ...answer.body, reference: null }])
    expect(read.headers.get('etag')).to.not.equal(answer.headers.get('etag'))
    const replayed = await paid(text, key)
    expect([replayed.status, isReplay(replayed), replayed.body]).to.deep.equal([201, true, read.body])
    expect(await response(text, answer.headers.get('ledger-position') ?? '')).to.deep.equal([])
    for (const by of [client, elsewhere]) {
      const again = await paid(text, newKey(), by)
      expect([again.status, again.body.code]).to.deep.equal([409, 'payment_reference_conflict'])
      expect(again.text).to.include(id)
    }
    expect(await storedTexts(text)).to.deep.equal([])
    expect((await client.get(`/invoices/${invoice}`)).body.amount_paid).to.equal(balance)
  })

  describe('while Postgres does not answer', () => {
    it('is a 503 at the first request of a key: nothing is stored, and the key and the reference are free', async () => {
      const [text, key] = [aReference(), newKey()]
      const after = await store.head()
      switched.state.isDown = true
      const refused = await paid(text, key)
      expect([refused.status, refused.body.code]).to.deep.equal([503, 'dependency_unavailable'])
      expect(await writtenBy(store, { after, answers: [refused] })).to.deep.equal([])
      switched.state.isDown = false
      const outcome = await client.get(`/idempotency-keys/${key}?operation=create_payment`)
      expect(outcome.body.status).to.equal('never_seen')
      const created = await paid(text, key, elsewhere)
      expect([created.status, isReplay(created)]).to.deep.equal([201, false])
    })

    it('is no 503 for a key that has made a payment, in any process', async () => {
      const [text, key] = [aReference(), newKey()]
      const created = await paid(text, key)
      const deferred = newKey()
      const taken = await paid(text, deferred)
      expect(taken.status).to.equal(409)
      switched.state.isDown = true
      const repeated = await paid(text, key, elsewhere)
      expect([repeated.status, repeated.body.code]).to.deep.equal([504, 'deadline_exceeded'])
      const reused = await pay(elsewhere, aPayment(invoiceId, { amount: 11, reference: text }), key)
      expect([reused.status, reused.body.code]).to.deep.equal([422, 'idempotency_key_reused'])
      const conflict = await paid(text, newKey(), elsewhere)
      expect([conflict.status, conflict.body.code]).to.deep.equal([409, 'payment_reference_conflict'])
      const without = await pay(elsewhere, aPayment(invoiceId, { amount: 10 }))
      expect(without.status).to.equal(201)
      switched.state.isDown = false
      expect(recordOf(await paid(text, key, elsewhere))).to.deep.equal(recordOf(created))
    })

    it('refuses a refund without an effect, and never one that was made', async () => {
      const { body } = await paid(aReference())
      const path = `/payments/${body.id}:refund`
      const key = { 'idempotency-key': newKey() }
      const refund = (by: Client) => by.post(path, { amount: 4, reason: 'broken' }, key)
      const after = await store.head()
      switched.state.isDown = true
      const refused = await refund(elsewhere)
      expect([refused.status, refused.body.code]).to.deep.equal([503, 'dependency_unavailable'])
      expect(await writtenBy(store, { after, answers: [refused] })).to.deep.equal([])
      switched.state.isDown = false
      const refunded = await refund(client)
      expect([refunded.status, refunded.body.refunded_amount]).to.deep.equal([200, 4])
      const third = await startProcess()
      switched.state.isDown = true
      const repeated = await refund(clientOf(third.api))
      expect([repeated.status, repeated.body.code]).to.deep.equal([504, 'deadline_exceeded'])
      switched.state.isDown = false
      const replayed = await refund(clientOf(third.api))
      expect([replayed.status, isReplay(replayed), replayed.text]).to.deep.equal([200, true, refunded.text])
      expect((await client.get(`/payments/${body.id}`)).body.refunded_amount).to.equal(4)
    })

    it('refuses a settlement without an effect, and never one that was made', async () => {
      const text = aReference()
      const { body } = await pay(client, aPayment(invoiceId, { amount: 10, reference: text, settlement: 'deferred' }))
      const settle = (by: Client) => by.post(`/payments/${body.id}:settle`, {})
      switched.state.isDown = true
      expect((await settle(elsewhere)).status).to.equal(503)
      expect(await eventsOf(`payment-${body.id}`)).to.have.length(2)
      switched.state.isDown = false
      expect((await settle(client)).body.state).to.equal('succeeded')
      const third = await startProcess()
      switched.state.isDown = true
      expect((await settle(clientOf(third.api))).status).to.equal(504)
      switched.state.isDown = false
    })
  })
})
