import { expect } from 'chai'
import fc from 'fast-check'
import { rangeOf } from '../../../src/http/request/ranges.ts'
import { type Client, clientOf } from '../../support/client.ts'
import { askFor, download, ended, fetched, manyPayments } from '../../support/exportSteps.ts'
import { expectLinearCost } from '../../support/linearCost.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'

const LENGTH = 1_000n
/** Quadratic time would cost a hundred times as much per character. */
const LINEAR = [{ short: 2_000, long: 200_000 }, 10] as const
const ETAG = '"v1"'

/** `first-last` of the range, or the reason why there is none. */
const parsed = (range: string | undefined, ifRange?: string, length = LENGTH): string => {
  const actual = rangeOf({ range, ifRange }, { etag: ETAG, length })
  if (actual === undefined) return 'whole'
  return actual === 'not satisfiable' ? actual : `${actual.first}-${actual.end - 1n}`
}

describe('a Range', () => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    '0-0': ['bytes=0-0'],
    '0-499': ['bytes=0-499', 'BYTES=0-499', 'bytes= 0-499 ', 'bytes=,0-499,,', 'bytes=000-00499'],
    '500-999': ['bytes=500-', 'bytes=-500', 'bytes=500-999', 'bytes=500-1000', `bytes=500-${'9'.repeat(40)}`],
    '999-999': ['bytes=999-', 'bytes=-1', 'bytes=999-999'],
    '0-999': ['bytes=0-', 'bytes=-1000', 'bytes=-1001', `bytes=-${'9'.repeat(40)}`],
    'not satisfiable': ['bytes=1000-', 'bytes=1000-1001', 'bytes=-0', `bytes=${'9'.repeat(40)}-`],
    whole: [
      ...['items=0-1', 'bytes', 'bytes=', 'bytes=,', 'bytes=-', 'bytes=5-4', 'bytes=a-b', 'bytes=0x0-1', 'bytes=+0-1'],
      ...['bytes=0-1,5-6', 'bytes=0-1, bytes=5-6', 'bytes=1 - 2', 'bytes=0-1;', 'bytes=1.0-2', ' bytes=0-1', '0-1', ''],
    ],
  }
  for (const [target, headers] of Object.entries(cases))
    it(`is ${target} in ${headers.length} forms`, () => {
      for (const header of headers) expect(parsed(header), header).to.equal(target)
    })

  it('is parsed in linear time', async () => {
    for (const text of [' ', 'a '])
      await expectLinearCost(n => () => expect(parsed(`bytes=0${text.repeat(n)}x`)).to.equal('whole'), ...LINEAR)
  })

  it('of an empty representation is ignored, as is one that is absent', () => {
    for (const header of ['bytes=0-', 'bytes=-5', 'bytes=0-0']) expect(parsed(header, undefined, 0n)).to.equal('whole')
    expect(parsed(undefined)).to.equal('whole')
  })

  it('applies only while If-Range, compared strongly, names this version', () => {
    expect(parsed('bytes=0-1', ETAG)).to.equal('0-1')
    for (const other of [`W/${ETAG}`, '"v2"', 'v1', `${ETAG}, "v2"`, '*', '', 'Sat, 01 Nov 2025 00:00:00 GMT'])
      expect(parsed('bytes=0-1', other), other).to.equal('whole')
    expect(parsed('bytes=5000-', '"v2"'), 'an unsatisfiable one, too').to.equal('whole')
  })

  it('is never outside of the representation', () => {
    const spec = fc.tuple(fc.option(fc.nat(30)), fc.option(fc.nat(30))).map(([a, b]) => `bytes=${a ?? ''}-${b ?? ''}`)
    fc.assert(
      fc.property(spec, fc.bigInt(0n, 20n), (range, length) => {
        const actual = rangeOf({ range, ifRange: undefined }, { etag: ETAG, length })
        if (typeof actual !== 'object') return
        expect(actual.first >= 0n && actual.first < actual.end && actual.end <= length, range).to.equal(true)
      }),
    )
  })
})

describe('the file of an export in parts', () => {
  const TENANT = 'exports-ranges'
  let service: TestService
  let client: Client
  let id: string
  let whole: Buffer
  let etag: string

  const part = (range: string, headers: Readonly<Record<string, string>> = {}) =>
    download(service, id, TENANT, { range, ...headers })

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
    const store = openEventStore({ connectionString: service.addresses.event_store })
    await manyPayments(store, TENANT, 700)
    await store.close()
    id = await askFor(client, { resource: 'payments', format: 'jsonl' })
    const { bytes, manifest } = await fetched(service, client, { id, tenant: TENANT })
    whole = bytes
    etag = `"${manifest.sha256}"`
    expect(whole.length, 'more than two chunks').to.be.greaterThan(3 * 256 * 1024)
  })

  it('announces ranges, with a strong validator and no-transform', async () => {
    const { headers } = await download(service, id, TENANT)
    expect(headers.get('accept-ranges')).to.equal('bytes')
    expect(headers.get('etag')).to.equal(etag)
    expect(headers.get('cache-control')).to.equal('private, no-cache, no-transform')
    expect(headers.has('content-range')).to.equal(false)
  })

  it('is sent as it is stored, for ranges at the beginning, the middle and the end, and across chunks', async () => {
    const chunk = 256 * 1024
    const last = whole.length - 1
    const ranges: readonly (readonly [string, number, number])[] = [
      ['bytes=0-0', 0, 0],
      [`bytes=${chunk - 1}-${chunk}`, chunk - 1, chunk],
      [`bytes=${chunk}-${2 * chunk - 1}`, chunk, 2 * chunk - 1],
      [`bytes=100-${3 * chunk}`, 100, 3 * chunk],
      [`bytes=${last}-`, last, last],
      ['bytes=-1000', last - 999, last],
      [`bytes=${2 * chunk + 5}-99999999999`, 2 * chunk + 5, last],
      ['bytes=0-', 0, last],
    ]
    for (const [range, first, to] of ranges) {
      const { status, headers, bytes } = await part(range)
      expect(status, range).to.equal(206)
      expect(headers.get('content-range')).to.equal(`bytes ${first}-${to}/${whole.length}`)
      expect(headers.get('content-length')).to.equal(String(to - first + 1))
      expect(headers.get('etag')).to.equal(etag)
      expect(bytes.equals(whole.subarray(first, to + 1)), range).to.equal(true)
    }
  })

  it('continues an interrupted download while the version is the same', async () => {
    const rest = await part('bytes=300000-', { 'if-range': etag })
    expect(rest.status).to.equal(206)
    expect(Buffer.concat([whole.subarray(0, 300_000), rest.bytes]).equals(whole)).to.equal(true)
    for (const other of ['"another"', `W/${etag}`]) {
      const all = await part('bytes=300000-', { 'if-range': other })
      expect([all.status, all.bytes.length]).to.deep.equal([200, whole.length])
    }
  })

  it('gets 416 with the length for an unsatisfiable range, and is sent whole for an unsupported one', async () => {
    const beyond = await client.get(`/exports/${id}/content`, { range: `bytes=${whole.length}-` })
    expect(beyond.body).to.include({ status: 416, code: 'range_not_satisfiable', category: 'invalid_input' })
    expect(beyond.headers.get('content-range')).to.equal(`bytes */${whole.length}`)
    for (const range of ['bytes=0-1,5-9', 'lines=1-2', 'bytes=9-1', 'nonsense']) {
      const { status, bytes } = await part(range)
      expect([status, bytes.length], range).to.deep.equal([200, whole.length])
    }
  })

  it('is 304 before any range is read, and HEAD has no range', async () => {
    const cached = await part('bytes=0-9', { 'if-none-match': etag })
    expect(cached.status).to.equal(304)
    const head = await client.request('HEAD', `/exports/${id}/content`, { headers: { range: 'bytes=0-9' } })
    expect([head.status, head.headers.get('content-length')]).to.deep.equal([200, String(whole.length)])
  })

  it('of no rows is whole for every range', async () => {
    const empty = await askFor(client, { resource: 'orders', format: 'jsonl' })
    await ended(client, empty)
    const { status, bytes } = await download(service, empty, TENANT, { range: 'bytes=0-9' })
    expect([status, bytes.length]).to.deep.equal([200, 0])
  })
})
