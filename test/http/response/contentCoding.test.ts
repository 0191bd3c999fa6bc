import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { codingOf } from '../../../src/http/response/contentCoding.ts'
import { anOrder, type Client, clientOf, retryingFetch } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { expectLinearCost } from '../../support/linearCost.ts'
import { sharedService, type TestService } from '../../support/service.ts'

/** Quadratic time would cost a hundred times as much per character. */
const LINEAR = [{ short: 2_000, long: 200_000 }, 10] as const

describe('the content coding that a caller prefers', () => {
  const cases: readonly (readonly [header: string | undefined, coding: string | undefined])[] = [
    [undefined, undefined],
    ['', undefined],
    ['gzip, deflate, br', 'br'],
    ['gzip, deflate', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['br;q=0.5, gzip;q=0.8', 'gzip'],
    ['br;q=0, gzip;q=0', undefined],
    ['br;q=0, *', 'gzip'],
    ['*', 'br'],
    ['*;q=0', undefined],
    ['identity', undefined],
    ['identity;q=1, gzip;q=0.5', undefined],
    ['identity;q=0.1, gzip;q=0.5', 'gzip'],
    ['identity;q=0, deflate', undefined],
    ['gzip;q=2', undefined],
    ['gzip;level=9', undefined],
    ['deflate, zstd', undefined],
    [',,gzip,', 'gzip'],
  ]
  for (const [header, coding] of cases) it(`of ${header} is ${coding}`, () => expect(codingOf(header)).to.equal(coding))

  it('is found in linear time', async () => {
    for (const text of [' ', '; ', ' ;q=0'])
      await expectLinearCost(n => () => expect(codingOf(`a${text.repeat(n)}b, gzip`)).to.equal('gzip'), ...LINEAR)
  })
})

describe('responses', () => {
  let service: TestService
  let client: Client
  let token: string
  before(async () => {
    service = await sharedService()
    token = await service.token({ tenant: 'coding' })
    client = clientOf(service.api, token)
    for (let n = 0; n < 10; n++) await client.post('/orders', anOrder())
    await eventually(async () => (await client.get('/orders')).body.items.length === 10)
  })

  type Raw = { status: number; headers: Headers; bytes: Buffer }
  /** The undecoded bytes; fetch would decode them. */
  const ask = (path: string, headers: Record<string, string> = {}, given: { method?: string; body?: string } = {}) =>
    new Promise<Raw>((resolve, reject) => {
      const sent = { authorization: `Bearer ${token}`, ...(given.body ? { 'content-type': 'application/json' } : {}) }
      const outgoing = request(`${service.api}${path}`, {
        method: given.method ?? 'GET',
        headers: { ...sent, ...headers },
      })
      outgoing.on('error', reject)
      outgoing.on('response', incoming => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('end', () => {
          const pairs = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)])
          resolve({ status: incoming.statusCode ?? 0, headers: new Headers(pairs), bytes: Buffer.concat(chunks) })
        })
      })
      outgoing.end(given.body)
    })

  const decode = { br: brotliDecompressSync, gzip: gunzipSync }
  for (const coding of ['br', 'gzip'] as const)
    for (const path of ['/orders', '/openapi.json', '/asyncapi.json'])
      it(`to ${path} are sent in ${coding} where it is accepted, with the same content`, async () => {
        const as = await ask(path, { 'accept-encoding': coding })
        const plain = await ask(path)
        expect([as.status, as.headers.get('content-encoding')]).to.deep.equal([200, coding])
        expect(plain.headers.get('content-encoding')).to.equal(null)
        for (const { headers } of [as, plain]) expect(headers.get('vary')).to.match(/(^|, )Accept-Encoding$/)
        expect(as.headers.get('content-length')).to.equal(String(as.bytes.length))
        expect(as.bytes.length).to.be.below(plain.bytes.length / 2)
        const decoded = JSON.parse(decode[coding](as.bytes).toString())
        // Cursors and positions differ from response to response.
        if (path === '/orders') expect(decoded.items).to.deep.equal(JSON.parse(plain.bytes.toString()).items)
        else expect(decoded).to.deep.equal(JSON.parse(plain.bytes.toString()))
        const head = await ask(path, { 'accept-encoding': coding }, { method: 'HEAD' })
        expect([head.headers.get('content-encoding'), head.headers.get('vary'), head.bytes.length]).to.deep.equal([
          coding,
          as.headers.get('vary'),
          0,
        ])
      })

  it('that are small are sent uncompressed', async () => {
    const { headers } = await ask('/orders?limit=1', { 'accept-encoding': 'br' })
    expect([headers.get('content-encoding'), headers.get('vary')?.includes('Accept-Encoding')]).to.deep.equal([
      null,
      true,
    ])
  })

  it('with a strong entity tag are sent uncompressed, so that the tag is that of these bytes', async () => {
    const lines = Array.from({ length: 50 }, (_, n) => ({ sku: `tea-${n}`, quantity: 1, unit_amount: 100 }))
    const body = JSON.stringify({ currency: 'USD', lines })
    const created = await ask('/orders', { 'accept-encoding': 'br, gzip' }, { method: 'POST', body })
    const { id } = JSON.parse(created.bytes.toString())
    const read = await ask(`/orders/${id}`, { 'accept-encoding': 'br, gzip' })
    for (const { headers, bytes } of [created, read]) {
      expect([
        headers.get('content-encoding'),
        headers.get('vary')?.includes('Accept-Encoding') ?? false,
      ]).to.deep.equal([null, false])
      expect(bytes.length).to.be.above(1_024)
    }
    const etag = read.headers.get('etag') ?? ''
    const cached = await ask(`/orders/${id}`, { 'accept-encoding': 'br', 'if-none-match': etag })
    expect([cached.status, cached.headers.get('content-encoding'), cached.bytes.length]).to.deep.equal([304, null, 0])
  })

  it('that contain a secret are sent uncompressed, whatever their length', async () => {
    const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`m${n}`, 'x'.repeat(100)]))
    const scopes = ['orders:read']
    const sent = [JSON.stringify({ name: 'n', scopes, metadata }), JSON.stringify({ name: 'n', scopes })]
    const issued = await Promise.all(
      sent.map(body => ask('/api-keys', { 'accept-encoding': 'br, gzip' }, { method: 'POST', body })),
    )
    const shown = issued.filter(({ status }) => status === 201)
    expect(shown).not.to.have.length(0)
    for (const { headers, bytes } of shown) {
      expect(headers.get('content-encoding')).to.equal(null)
      expect(bytes.toString()).to.include('"secret"')
    }
    const { headers } = await ask('/oauth/jwks', { 'accept-encoding': 'br' })
    expect(headers.get('content-encoding')).to.equal(null)
  })

  it('that are streamed are sent uncompressed, part by part', async () => {
    const answer = await retryingFetch(`${service.api}/events`, {
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream', 'accept-encoding': 'br, gzip' },
    })
    const reader = answer.body?.getReader()
    let text = ''
    while (!text.includes('event: order.created')) {
      const { done = true, value } = (await reader?.read()) ?? {}
      if (done) expect.fail('The stream ended.')
      text += Buffer.from(value ?? new Uint8Array()).toString()
    }
    await reader?.cancel()
    expect(answer.headers.get('content-encoding')).to.equal(null)
  })

  it('with the file of an export are sent uncompressed, since ranges are those of its bytes', async () => {
    const reply = await client.post('/exports', { resource: 'orders', format: 'csv' })
    await eventually(async () => (await client.get(`/operations/${reply.body.id}`)).body.state === 'succeeded')
    const path = `/exports/${reply.body.id}/content`
    const whole = await ask(path, { 'accept-encoding': 'br, gzip' })
    const part = await ask(path, { 'accept-encoding': 'br, gzip', range: 'bytes=0-9' })
    expect([whole, part].map(({ headers }) => headers.get('content-encoding'))).to.deep.equal([null, null])
    expect(part.bytes).to.deep.equal(whole.bytes.subarray(0, 10))
  })
})
