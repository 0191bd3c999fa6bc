import { Validator } from '@seriousme/openapi-schema-validator'
import { expect } from 'chai'
import { NEWEST_VERSION, OLDEST_VERSION, type Version, VERSIONS } from '../../../src/http/versions/index.ts'
import { resolveVersionWithout } from '../../../src/http/versions/requestedVersion.ts'
import {
  anOrder,
  type Answer,
  approvedInvoice,
  aPayment,
  type Client,
  clientOf,
  isReplay,
  newKey,
  pay,
  recordOf,
} from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { startVariant } from '../../support/serviceVariants.ts'

/** The client with API-Version on every request. */
const speaking = (client: Client, version: Version): Client => {
  const request: Client['request'] = (method, path, requested = {}) =>
    client.request(method, path, { ...requested, headers: { ...requested.headers, 'api-version': version } })
  return {
    request,
    get: (path, headers = {}) => request('GET', path, { headers }),
    post: (path, body, headers = {}) => request('POST', path, { body, headers }),
  }
}

describe('versions side by side', () => {
  let service: TestService
  let client: Client
  let older: Client
  let newer: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'versions' }))
    older = speaking(client, OLDEST_VERSION)
    newer = speaking(client, NEWEST_VERSION)
  })

  const versionOf = ({ headers }: Answer): string | null => headers.get('api-version')
  const etagOf = ({ headers }: Answer): string => headers.get('etag') ?? ''

  it('answer by the version that is asked for, the oldest by default, errors included', async () => {
    const anonymous = clientOf(service.api)
    for (const [requested, expected] of [
      [client, OLDEST_VERSION],
      [older, OLDEST_VERSION],
      [newer, NEWEST_VERSION],
      [speaking(anonymous, NEWEST_VERSION), NEWEST_VERSION],
    ] as const)
      for (const path of ['/orders?limit=1', '/orders?limit=0', '/orders/ord_0', '/nowhere', '/livez'])
        expect(versionOf(await requested.get(path)), `${expected} ${path}`).to.equal(expected)
    expect(versionOf(await newer.request('DELETE', '/orders')), '405').to.equal(NEWEST_VERSION)
  })

  it('show the same invoice, each with its own names', async () => {
    const { invoiceId } = await approvedInvoice(client, 900)
    const paid = await pay(client, aPayment(invoiceId, { amount: 200 }))
    const was = await older.get(`/invoices/${invoiceId}`)
    const is = await newer.get(`/invoices/${invoiceId}`)
    expect((await client.get(`/invoices/${invoiceId}`)).text).to.equal(was.text)
    expect(was.body).to.include({ amount_due: 900, amount_paid: 200 }).and.not.have.property('total_amount')
    expect(is.body).to.include({ total_amount: 900, amount_outstanding: 700 }).and.not.have.property('amount_due')
    const reached = { 'if-min-position': paid.headers.get('ledger-position') ?? '', prefer: 'wait=5' }
    const lists = await Promise.all([older, newer].map(one => one.get('/invoices?limit=1', reached)))
    expect(lists.map(({ body }) => 'amount_due' in body.items[0])).to.deep.equal([true, false])
  })

  it('have entity tags of their own, which work only with their version', async () => {
    const order = await client.post('/orders', anOrder())
    const invoice = await older.post('/invoices', { order_id: order.body.id })
    const path = `/invoices/${invoice.body.id}`
    const newest = etagOf(await newer.get(path))
    expect(newest).not.to.equal(etagOf(invoice))
    expect((await newer.get(path, { 'if-none-match': etagOf(invoice) })).status).to.equal(200)
    const unchanged = await newer.get(path, { 'if-none-match': newest })
    expect([unchanged.status, versionOf(unchanged)]).to.deep.equal([304, NEWEST_VERSION])
    const refused = await newer.post(`${path}:approve`, {}, { 'if-match': etagOf(invoice) })
    expect([refused.status, etagOf(refused)]).to.deep.equal([412, newest])
    const refusedBefore = await older.post(`${path}:approve`, {}, { 'if-match': newest })
    expect([refusedBefore.status, etagOf(refusedBefore)]).to.deep.equal([412, etagOf(invoice)])
    expect((await newer.post(`${path}:approve`, {}, { 'if-match': newest })).body.state).to.equal('approved')
  })

  it('are one request to the Idempotency-Key; a replay has the shape of its own version', async () => {
    const order = await client.post('/orders', anOrder())
    const key = { 'idempotency-key': newKey() }
    const raised = await older.post('/invoices', { order_id: order.body.id, due_date: '2027-01-01' }, key)
    const repeated = await older.post('/invoices', { order_id: order.body.id, due_date: '2027-01-01' }, key)
    const translated = await newer.post('/invoices', { order_id: order.body.id, due_date: '2027-01-01' }, key)
    expect(recordOf(repeated)).to.deep.equal(recordOf(raised))
    expect([isReplay(repeated), isReplay(translated)]).to.deep.equal([true, true])
    expect(translated.body).to.include({ id: raised.body.id, total_amount: raised.body.amount_due })
    expect([etagOf(raised), etagOf(translated)]).to.deep.equal([`"0.${OLDEST_VERSION}"`, `"0.${NEWEST_VERSION}"`])
    const other = await newer.post('/invoices', { order_id: order.body.id, due_date: '2027-01-02' }, key)
    expect([other.status, other.body.errors[0].pointer]).to.deep.equal([422, '/due_date'])
  })

  it('refund all that is left: by default before, by name now', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const paid = (await pay(client, aPayment(invoiceId, { amount: 500 }))).body
    const path = `/payments/${paid.id}:refund`
    const key = { 'idempotency-key': newKey() }
    const [unnamed] = (await newer.post(path, { reason: 'damaged' }, key)).body.errors
    expect(unnamed.pointer).to.equal('/amount')
    const early = await older.post(path, { amount: 'remaining', reason: 'damaged' }, key)
    expect(early.body.errors).to.deep.equal([
      { pointer: '/amount', code: 'invalid_type', detail: 'Must be a whole number, not a string.' },
    ])
    const refunded = await older.post(path, { reason: 'damaged' }, key)
    expect(refunded.body).to.include({ state: 'refunded', refunded_amount: 500 })
    const replayed = await newer.post(path, { amount: 'remaining', reason: 'damaged' }, key)
    expect([replayed.status, isReplay(replayed), replayed.text]).to.deep.equal([200, true, refunded.text])
    const changed = await newer.post(path, { amount: 500, reason: 'damaged' }, key)
    expect([changed.status, changed.body.errors[0].pointer]).to.deep.equal([422, '/amount'])
  })

  it('continue a list with the cursor of another version', async () => {
    await client.post('/orders', anOrder())
    const position = (await client.post('/orders', anOrder())).headers.get('ledger-position') ?? ''
    const first = await older.get('/orders?limit=1', { 'if-min-position': position, prefer: 'wait=5' })
    const next = await newer.get(`/orders?limit=1&cursor=${first.body.page.next_cursor}`)
    expect([next.status, next.body.items.length]).to.deep.equal([200, 1])
  })

  it('have the same facts', async () => {
    const [was, is] = await Promise.all([older, newer].map(one => one.get('/events?limit=3')))
    expect(is?.body.items).to.deep.equal(was?.body.items)
  })

  it('have the same files of exports and the same histories, whose names of members stay', async () => {
    const { invoiceId } = await approvedInvoice(client)
    const histories = await Promise.all([older, newer].map(one => one.get(`/invoices/${invoiceId}/history`)))
    expect(histories[1]?.text).to.equal(histories[0]?.text)
    const reply = await newer.post(
      '/exports',
      { resource: 'invoices', format: 'jsonl' },
      { 'idempotency-key': newKey() },
    )
    const operation = await eventually(async () => {
      const answer = await newer.get(`/operations/${reply.body.id}`)
      return answer.body.state === 'succeeded' && answer
    })
    const files = await Promise.all([older, newer].map(one => one.get(operation.body.result.href)))
    expect(files[1]?.text).to.equal(files[0]?.text).and.to.include('"amount_due":')
    expect(files.map(etagOf)[1]).to.equal(files.map(etagOf)[0])
  })

  it('have a document each, which generators of clients can use', async () => {
    for (const version of VERSIONS) {
      const { body, headers } = await speaking(client, version).get('/openapi.json')
      expect([body.info.version, headers.get('vary')]).to.deep.equal([version, 'API-Version, Accept-Encoding'])
      expect((await new Validator().validate(structuredClone(body))).valid).to.equal(true)
      expect((await speaking(client, version).get('/asyncapi.json')).body.info.version).to.equal(version)
      const parameter = body.components.parameters['API-Version']
      expect([parameter.required, parameter.schema.enum]).to.deep.equal([version !== OLDEST_VERSION, [version]])
    }
    expect((await client.get('/openapi.json')).body.info.version).to.equal(OLDEST_VERSION)
  })

  it('are refused after the rest of the request head, whether unknown or retired', async () => {
    const variant = await startVariant(service, { resolveVersion: resolveVersionWithout(new Set([OLDEST_VERSION])) })
    try {
      const retiring = clientOf(variant.api, 'any')
      const retired = await speaking(retiring, OLDEST_VERSION).get('/orders')
      expect([retired.status, retired.body.code, versionOf(retired)]).to.deep.equal([
        410,
        'version_retired',
        NEWEST_VERSION,
      ])
      expect(versionOf(await retiring.get('/orders'))).to.equal(NEWEST_VERSION)
      expect((await retiring.get('/docs')).text).to.include(`data-version="${NEWEST_VERSION}"`)
      expect((await retiring.get('/orders', { 'api-version': '2026-11-02' })).body.code).to.equal(
        'unsupported_api_version',
      )
    } finally {
      await variant.close()
    }
  })
})
