import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb.ts'
import type { EventStore } from '../../src/ports.ts'
import { anOrder, type Answer, type Asked, type Client, clientOf } from '../support/client.ts'
import { quietHead, sharedService, type TestService } from '../support/service.ts'

const BODY_MAX_BYTES = 64 * 1024
const JSON_TYPE = { 'content-type': 'application/json' }

const pointersOf = ({ body }: Answer): string[] => body.errors.map(({ pointer }: { pointer: string }) => pointer)
const bytesOf = (...parts: (string | number[])[]): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(parts.flatMap(part => (typeof part === 'string' ? [...Buffer.from(part)] : part)))
const nested = (depth: number): string => '{"a":'.repeat(depth - 1) + '{}' + '}'.repeat(depth - 1)
const members = (count: number): string => `{${Array.from({ length: count }, (_, index) => `"m${index}":0`).join(',')}}`

describe('a body', function () {
  this.timeout(30_000)
  let service: TestService
  let client: Client
  let store: EventStore
  let untouched: bigint
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'bodies' }))
    store = openEventStore({ connectionString: service.addresses.event_store })
    untouched = await quietHead(store)
  })
  after(() => store.close())

  const post = (asked: Asked): Promise<Answer> => client.request('POST', '/orders', asked)
  const refuses = async (asked: Asked, status: number, code: string, what: string): Promise<Answer> => {
    const answer = await post(asked)
    expect(answer.body, what).to.include({ status, code })
    return answer
  }

  it('that does not fit is refused with every violation and where it is', async () => {
    const body = {
      currency: 'usd',
      lines: [{ sku: '', quantity: 0, unit_amount: 1.5, extra: 1 }, 7, { sku: 'a', quantity: 1 }],
      metadata: { 'a/b': 1, '~': 'x'.repeat(501) },
      bogus: true,
      customer_reference: 5,
    }
    const answer = await refuses({ body }, 400, 'validation_failed', 'many')
    expect(pointersOf(answer)).to.have.members([
      ...['/currency', '/lines/0/sku', '/lines/0/quantity', '/lines/0/unit_amount', '/lines/0/extra', '/lines/1'],
      ...['/lines/2/unit_amount', '/metadata/a~1b', '/metadata/~0', '/bogus', '/customer_reference'],
    ])
    for (const { code, detail } of answer.body.errors)
      expect([code, detail].every(text => text.length > 0)).to.equal(true)
  })

  for (const [what, raw] of [
    ['no object', '[]'],
    ['nothing but a word', 'null'],
    ['a text', '"{}"'],
    ['no lines', '{"currency":"USD","lines":[]}'],
    [
      'lines that add up to too much',
      '{"currency":"USD","lines":[{"sku":"a","quantity":1000000,"unit_amount":1000000}]}',
    ],
    [
      'a number that no double holds',
      '{"currency":"USD","lines":[{"sku":"a","quantity":0.99999999999999999999,"unit_amount":1}]}',
    ],
    ['a number beyond every double', '{"currency":"USD","lines":[{"sku":"a","quantity":1e400,"unit_amount":1}]}'],
    [
      'a member of the prototype',
      '{"currency":"USD","lines":[{"sku":"a","quantity":1,"unit_amount":1}],"__proto__":{}}',
    ],
    [
      'one inside the metadata',
      '{"currency":"USD","lines":[{"sku":"a","quantity":1,"unit_amount":1}],"metadata":{"__proto__":"x"}}',
    ],
    ['one in disguise', '{"currency":"USD","lines":[{"sku":"a","quantity":1,"unit_amount":1}],"\\u005f_proto__":{}}'],
    ['a constructor', '{"currency":"USD","lines":[{"sku":"a","quantity":1,"unit_amount":1}],"constructor":{}}'],
    [
      '51 members of metadata',
      `{"currency":"USD","lines":[{"sku":"a","quantity":1,"unit_amount":1}],"metadata":${members(51).replaceAll(':0', ':"0"')}}`,
    ],
    ['sixteen levels', nested(16)],
    ['a thousand members', members(1_000)],
  ] as const)
    it(`with ${what} is refused by the schema`, () => refuses({ raw }, 400, 'validation_failed', what))

  for (const [what, raw] of [
    ['nothing', ' '],
    ['half an object', '{"currency":"USD"'],
    ['something behind the object', '{} {}'],
    ['a comma too many', '{"currency":"USD",}'],
    ['a comment', '{} // yes'],
    ['single quotes', "{'currency':'USD'}"],
    ['a bare name', '{currency:"USD"}'],
    ['a line break in a text', '{"currency":"US\nD"}'],
    ['a bad escape', '{"currency":"\\x41"}'],
    ['NaN', '{"amount":NaN}'],
    ['U+0000', '{"customer_reference":"a\\u0000b"}'],
    ['U+0000 in a name', '{"a\\u0000b":1}'],
    ['a lone high surrogate', '{"customer_reference":"\\ud800"}'],
    ['a lone low surrogate', '{"customer_reference":"\\udc00x"}'],
    ['surrogates in the wrong order', '{"customer_reference":"\\udc00\\ud800"}'],
    ['a space that JSON does not have', '{\u00a0"currency":"USD"}'],
  ] as const)
    it(`with ${what} is no JSON`, () => refuses({ raw }, 400, 'invalid_json', what))

  it('with a byte order mark, in UTF-16 or in broken UTF-8 is no JSON', async () => {
    const text = JSON.stringify(anOrder())
    for (const [what, raw] of [
      ['mark', bytesOf([0xef, 0xbb, 0xbf], text)],
      ['UTF-16', Uint8Array.from(Buffer.from(text, 'utf16le'))],
      ['UTF-16 with its mark', bytesOf([0xff, 0xfe], [...Buffer.from(text, 'utf16le')])],
      ['overlong', bytesOf('{"currency":"', [0xc0, 0xaf], '"}')],
      ['cut off', bytesOf('{"currency":"', [0xe2, 0x82], '"}')],
      ['surrogate in UTF-8', bytesOf('{"currency":"', [0xed, 0xa0, 0x80], '"}')],
    ] as const)
      await refuses({ raw, headers: JSON_TYPE }, 400, 'invalid_json', what)
  })

  it('that names a member twice is refused, however the name is written and wherever it stands', async () => {
    for (const raw of [
      '{"currency":"USD","currency":"USD"}',
      '{"currency":"USD","c\\u0075rrency":"EUR"}',
      '{"metadata":{"a":"1","a":"2"}}',
      '{"lines":[{"sku":"a","sku":"b"}]}',
    ])
      await refuses({ raw }, 400, 'duplicate_json_key', raw)
  })

  it('of seventeen levels, or of 1,001 members, is refused before anybody looks at it', async () => {
    for (const raw of [nested(17), '['.repeat(17) + ']'.repeat(17), '['.repeat(30_000), members(1_001)])
      await refuses({ raw }, 400, 'json_limits_exceeded', raw.slice(0, 40))
    const items = Array.from({ length: 1_001 }, () => '0').join(',')
    await refuses({ raw: `{"lines":[${items}]}` }, 400, 'json_limits_exceeded', 'items')
  })

  it('may have 64 KiB and no byte more, announced or in chunks', async () => {
    const text = JSON.stringify(anOrder())
    const whole = text.padEnd(BODY_MAX_BYTES, ' ')
    await refuses({ raw: `${whole} ` }, 413, 'payload_too_large', 'announced')
    const chunked = async (size: number) => {
      const chunks = ReadableStream.from(
        [text, ' '.repeat(1_000), ' '.repeat(size - 1_000 - text.length)].map(part => Buffer.from(part)),
      )
      const headers = { ...JSON_TYPE, authorization: `Bearer ${await service.token({ tenant: 'bodies' })}` }
      const response = await fetch(`${service.api}/orders`, {
        method: 'POST',
        headers,
        body: chunks,
        duplex: 'half',
      })
      return { status: response.status, body: (await response.json()) as { code?: string } }
    }
    expect(await chunked(BODY_MAX_BYTES + 1)).to.deep.include({ status: 413 })
    expect((await chunked(1_000_000)).body.code).to.equal('payload_too_large')
    expect(await store.head(), 'nothing of all that was stored').to.equal(untouched)
    expect((await post({ raw: whole })).status).to.equal(201)
    expect((await chunked(BODY_MAX_BYTES)).status).to.equal(201)
  })

  it('of another media type is refused, and told which is taken', async () => {
    const raw = bytesOf(JSON.stringify(anOrder()))
    for (const headers of [
      {},
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'application/merge-patch+json' },
      { 'content-type': 'application/jsonx' },
      { 'content-type': 'application/json; charset=utf-16' },
      { 'content-type': 'application/json;charset="iso-8859-1"' },
      { ...JSON_TYPE, 'content-encoding': 'gzip' },
    ]) {
      const answer = await refuses({ raw, headers }, 415, 'unsupported_media_type', JSON.stringify(headers))
      expect(answer.headers.get('accept-post')).to.equal('application/json')
    }
    for (const type of ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"', 'application/json;v=1'])
      expect((await post({ raw, headers: { 'content-type': type } })).status, type).to.equal(201)
  })

  it('keeps every character that it may have', async () => {
    const metadata = { 'é/~': '𝄞 \u2028 \u007f \ufeff', constructor: 'x', toString: 'y', '1': 'one', ' ': '' }
    const created = await post({ body: { ...anOrder(), customer_reference: '日本\t"\\', metadata } })
    expect(created.status, created.text).to.equal(201)
    const read = await client.get(created.headers.get('location') ?? '')
    expect(read.body.customer_reference).to.equal('日本\t"\\')
    expect(read.body.metadata).to.deep.equal(metadata)
  })
})
