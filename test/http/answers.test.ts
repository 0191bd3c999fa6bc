import { expect } from 'chai'
import { type Answer, anOrder, approvedInvoice, aPayment, clientOf, type Client, newKey } from '../support/client.ts'
import { type ErrorCode, Problem, PROBLEMS } from '../../src/http/problems/problemCatalogue.ts'
import { documentOf } from '../../src/http/problems/problemDocument.ts'
import { sharedService, type TestService } from '../support/service.ts'

/** Answers to common mistakes: each says by itself what to send instead, in words of the API. */
describe('the answer to a mistake says what to do', () => {
  let service: TestService
  let client: Client
  let invoiceId: string
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'mistakes' }))
    invoiceId = (await approvedInvoice(client)).invoiceId
  })

  const pay = (payment: unknown, key = newKey()): Promise<Answer> =>
    client.post('/payments', payment, { 'idempotency-key': key })
  const detailsOf = ({ body }: Answer): readonly string[] =>
    body.errors?.map(({ pointer, detail }: { pointer: string; detail: string }) => `${pointer}: ${detail}`) ?? [
      body.detail,
    ]

  const members: Readonly<Record<string, readonly [change: object, detail: string]>> = {
    'a member that is missing': [{ amount: undefined }, '/amount: This field is required.'],
    'an amount as text': [{ amount: '900' }, '/amount: Must be a whole number, not a string.'],
    'an amount with decimal places': [
      { amount: 9.5 },
      '/amount: Must be a whole number of minor units, such as 1099 for 10.99 USD.',
    ],
    'an amount of null': [{ amount: null }, '/amount: Must be a whole number, not null.'],
    'an amount of 0': [{ amount: 0 }, '/amount: Must be at least 1.'],
    'a currency in small letters': [
      { currency: 'usd' },
      '/currency: Must be an ISO 4217 currency code in capital letters, such as USD.',
    ],
    'an id that is none': [
      { invoice_id: 'INV-1' },
      '/invoice_id: Must be an id, such as inv_01JB3N8Q6Z4T1V7W9XAC2E5GHK.',
    ],
    'a word that is not in the list': [{ settlement: 'later' }, '/settlement: Must be one of "immediate", "deferred".'],
    'an empty text': [{ reference: '' }, '/reference: Must have at least 1 character.'],
    'a text that is too long': [{ reference: 'r'.repeat(501) }, '/reference: Must have at most 500 characters.'],
    'an array for an object': [{ metadata: [] }, '/metadata: Must be an object, not an array.'],
    'a name that is too long': [
      { metadata: { ['n'.repeat(41)]: '' } },
      `/metadata/${'n'.repeat(41)}: The name of this field is not permitted. Must have at most 40 characters.`,
    ],
    'an unknown member': [{ note: '' }, '/note: There is no such field.'],
  }
  for (const [name, [change, detail]] of Object.entries(members))
    it(`in a body: ${name}`, async () => {
      expect(detailsOf(await pay({ ...aPayment(invoiceId), ...change }))).to.deep.equal([detail])
    })

  it('in a body with alternatives', async () => {
    const refund = { reason: 'damaged' }
    const paid = await pay(aPayment((await approvedInvoice(client)).invoiceId))
    const path = `/payments/${paid.body.id}:refund`
    const key = { 'idempotency-key': newKey(), 'api-version': '2026-11-22' }
    expect(detailsOf(await client.post(path, refund, key))).to.deep.equal(['/amount: This field is required.'])
    expect(detailsOf(await client.post(path, { ...refund, amount: 'all' }, key))).to.deep.equal([
      '/amount: Must be an amount in minor units of the currency, or "remaining".',
    ])
    expect(detailsOf(await client.post('/exports', { resource: 'order', format: 'csv' }))[0]).to.match(
      /^\/resource: Must be one of "\w+", "/,
    )
  })

  it('in a query', async () => {
    expect(detailsOf(await client.get('/orders?outcome=x'))[0]).to.match(
      /^\?outcome: Unknown parameter\. Supported parameters, described at \/docs: limit, cursor, created_after, /,
    )
    expect(detailsOf(await client.get('/livez?a'))).to.deep.equal(['?a: Unknown parameter. This path has none.'])
    expect(detailsOf(await client.get('/orders?limit=1&limit=2'))).to.deep.equal([
      '?limit: A parameter may be given only once.',
    ])
    expect(detailsOf(await client.get('/orders?limit=ten'))).to.deep.equal([
      '?limit: Must be a whole number from 1 to 100.',
    ])
    expect(detailsOf(await client.get('/trial-balance?as_of=2026-11-24'))).to.deep.equal([
      '?as_of: Must be an RFC 3339 timestamp, such as 2026-11-24T00:00:00Z.',
    ])
  })

  it('in the detail alone, which names the first violations', async () => {
    expect((await pay({ ...aPayment(invoiceId), amount: '900', currency: 'usd' })).body.detail).to.equal(
      '/amount: Must be a whole number, not a string. ' +
        '/currency: Must be an ISO 4217 currency code in capital letters, such as USD.',
    )
    expect((await client.get('/orders?a&b&c&d')).body.detail).to.match(
      /^\?a: .* \?c: [^?]* The others are in errors\.$/,
    )
    const key = newKey()
    await pay({ ...aPayment(invoiceId), amount: 1 }, key)
    const reused = await pay({ ...aPayment(invoiceId), amount: 2, reference: 'r-2' }, key)
    expect(reused.body.detail).to.match(
      /^\/amount and \/reference differ from the first request with this key\. .*use a new key\.$/,
    )
  })

  it('in a path: what exists instead', async () => {
    const details = {
      '/order': /GET \/openapi\.json` lists all of them/,
      '/orders/42': /^Must be an id, such as ord_/,
      '/orders/ord_01JB3N8Q6Z4T1V7W9XAC2E5GHK': /^The tenant of this credential has no such resource\./,
      '/accounts/receivables.USD.CUST-17': /the codes of one customer, GET \/accounts\?customer_reference=…\.$/,
      '/accounts/cash.EUR': /To list all codes, send GET \/accounts/,
      '/accounts/cash.EUR/entries': /To list all codes, send GET \/accounts/,
      '/problems/none': /\/docs describes the path/,
      '/orders?cursor=none': /leave it out to start at the first page\.$/,
    }
    for (const [path, detail] of Object.entries(details)) expect((await client.get(path)).body.detail).to.match(detail)
    expect((await client.request('PUT', '/orders')).body.detail).to.equal('Methods of this path: POST, GET, HEAD.')
  })

  it('never with the title alone', () => {
    for (const code of Object.keys(PROBLEMS) as ErrorCode[]) {
      const { title, detail } = documentOf(new Problem(code), { instance: '/', correlationId: 'c' })
      expect(detail).not.to.include(title)
    }
  })

  it('in a header', async () => {
    const order = await client.post('/orders', anOrder())
    const cancel = (headers: Readonly<Record<string, string>>): Promise<Answer> =>
      client.post(`/orders/${order.body.id}:cancel`, { reason: 'wrong' }, headers)
    const etag = order.headers.get('etag') ?? ''
    const unquoted = await cancel({ 'if-match': etag.replaceAll('"', '') })
    expect(unquoted.body.detail).to.match(/exactly as its header had it, including the double quotes/)
    const stale = await cancel({ 'if-match': '"9.2026-11-01"' })
    expect([stale.status, stale.headers.get('etag')]).to.deep.equal([412, etag])
    expect(stale.body.detail)
      .to.match(/^The current ETag is "/)
      .and.to.include(etag)
    const keyless = await client.post('/payments', aPayment(invoiceId))
    expect(keyless.body.detail).to.include('such as a UUID')
    for (const version of ['2030-01-01', 'newest'])
      expect((await client.get('/orders', { 'api-version': version })).body.detail).to.equal(
        'This API version does not exist. The available versions are 2026-11-01 and 2026-11-22.',
      )
  })

  it('in the state: an invoice that accepts no payment, and one that is paid', async () => {
    const draft = await client.post('/invoices', { order_id: (await client.post('/orders', anOrder())).body.id })
    expect((await pay(aPayment(draft.body.id))).body.detail).to.equal(
      'The invoice is draft. Approve it first: POST /invoices/{id}:approve.',
    )
    expect((await pay({ ...aPayment(invoiceId), currency: 'EUR' })).body.detail).to.equal(
      'The invoice accepts payments in its own currency only: USD.',
    )
    const { invoiceId: paidId } = await approvedInvoice(client)
    await pay(aPayment(paidId, { amount: 900 }))
    expect((await pay(aPayment(paidId, { amount: 1 }))).body).to.include({
      code: 'payment_exceeds_due',
      detail: '0 of 900 is still due (minor units of USD). Pay at most that, with a new Idempotency-Key.',
      still_due: 0,
      currency: 'USD',
    })
  })

  it('in the token: which part of it was refused', async () => {
    const token = await service.token({ tenant: 'mistakes' })
    const [head = '', claims = '', signature = ''] = token.split('.')
    const forged = `${head}.${claims}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
    const other = Buffer.from(JSON.stringify({ ...claimsOf(claims), iss: 'https://other.example' })).toString(
      'base64url',
    )
    const detailWith = async (sent: string): Promise<string> =>
      (await clientOf(service.api, sent).get('/orders')).body.detail
    expect(await detailWith(forged)).to.include('signature')
    expect(await detailWith(`${head}.${other}.${signature}`)).to.include('issuer of the token (iss)')
    expect(await detailWith('none')).to.include('not a JSON Web Token')
  })

  it('in the scope: the page of the problem says how to get a token with it', async () => {
    const reader = clientOf(service.api, await service.token({ tenant: 'mistakes', scopes: ['orders:read'] }))
    const refused = await reader.get('/invoices')
    expect(refused.body.detail).to.equal(
      'This operation requires the scope invoices:read. /problems/insufficient_scope says how to get a token with it.',
    )
    const page = await client.get(refused.body.type)
    expect(page.text).to.include('oauth-protected-resource').and.to.include('ledger -- token')
  })
})

const claimsOf = (segment: string): object => JSON.parse(Buffer.from(segment, 'base64url').toString()) as object
