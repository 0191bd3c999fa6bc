import { expect } from 'chai'
import { anOrder, type Client, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { dial, exchange } from '../../support/rawHttp.ts'

const ORDER = JSON.stringify(anOrder())
const TOO_LONG = 64 * 1024 + 1

describe('a body that the client announces', () => {
  let service: TestService
  let client: Client
  let token: string
  before(async () => {
    service = await sharedService()
    token = await service.token({ tenant: 'expectations' })
    client = clientOf(service.api, token)
  })

  const head = (line: string, ...fields: readonly string[]): string =>
    [`${line} HTTP/1.1`, `Host: ${new URL(service.api).host}`, ...fields, 'Expect: 100-continue', '', ''].join('\r\n')
  const json = 'Content-Type: application/json'

  type Case = readonly [what: string, expected: string, head: () => string]
  const refused: readonly Case[] = [
    [
      'too long',
      '413',
      () => head('POST /orders', `Authorization: Bearer ${token}`, json, `Content-Length: ${TOO_LONG}`),
    ],
    [
      'of another type',
      '415',
      () => head('POST /orders', `Authorization: Bearer ${token}`, 'Content-Type: text/csv', 'Content-Length: 2'),
    ],
    [
      'with a content coding',
      '415',
      () => head('POST /orders', `Authorization: Bearer ${token}`, json, 'Content-Encoding: gzip', 'Content-Length: 2'),
    ],
    ['without a credential', '401', () => head('POST /orders', json, 'Content-Length: 2')],
    [
      'of an operation without one',
      '400',
      () => head('GET /orders', `Authorization: Bearer ${token}`, json, 'Content-Length: 2'),
    ],
    ['for an unknown path', '404', () => head('POST /unknown', json, 'Content-Length: 2')],
    [
      'too long for the issuer',
      '413',
      () => head('POST /oauth/token', 'Content-Type: application/x-www-form-urlencoded', `Content-Length: ${TOO_LONG}`),
    ],
  ]
  for (const [what, status, bytes] of refused)
    it(`${what} is refused before 100 Continue, and the connection is closed`, async () => {
      const { answers, interim, closed } = await exchange(service.api, bytes(), { answers: 1 })
      expect([answers.map(answer => String(answer.status)), interim]).to.deep.equal([[status], []])
      // The client may send the body or not, so that the next bytes could be the body or another request.
      expect([answers[0]?.headers.get('connection'), closed]).to.deep.equal(['close', true])
    })

  it('gets 100 Continue when its head passes every check', async () => {
    const fields = [
      `Authorization: Bearer ${token}`,
      json,
      `Idempotency-Key: ${newKey()}`,
      `Content-Length: ${ORDER.length}`,
    ]
    const { answers, interim } = await exchange(service.api, head('POST /orders', ...fields) + ORDER, { answers: 1 })
    expect([answers[0]?.status, interim]).to.deep.equal([201, [100]])
    const form = 'grant_type=client_credentials'
    const requested = head(
      'POST /oauth/token',
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${form.length}`,
    )
    // The issuer answers with OAuth errors instead of problem documents.
    const socket = await dial(service.api)
    let text = ''
    socket.on('data', chunk => (text += String(chunk)))
    socket.write(requested + form)
    await eventually(async () => text.includes('"error"'))
    socket.destroy()
    expect(text).to.match(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 40[01] /)
  })

  it('with a content coding is refused with the supported codings, and one of another type with the supported types', async () => {
    const coded = await client.request('POST', '/orders', {
      raw: ORDER,
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    })
    expect([coded.status, coded.headers.get('accept-encoding')]).to.deep.equal([415, 'identity'])
    const typed = await client.request('POST', '/orders', { raw: ORDER, headers: { 'content-type': 'text/csv' } })
    expect([typed.status, typed.headers.get('accept-encoding'), typed.headers.get('accept-post')]).to.deep.equal([
      415,
      null,
      'application/json',
    ])
  })

  it('with text that cannot be stored is refused with a pointer, as valid JSON', async () => {
    const raw = '{"currency":"USD","lines":[{"sku":"a\\u0000"}],"a\\ud800":1,"metadata":{"k/":"\\udfff"}}'
    const { status, body } = await client.request('POST', '/orders', { raw })
    expect([status, body.code, body.title]).to.deep.equal([400, 'validation_failed', 'The request failed validation.'])
    expect(body.errors.map(({ pointer, code }: { pointer: string; code: string }) => [pointer, code])).to.deep.equal([
      ['/lines/0/sku', 'nul_character'],
      ['', 'lone_surrogate'],
      ['/metadata/k~1', 'lone_surrogate'],
    ])
  })
})
