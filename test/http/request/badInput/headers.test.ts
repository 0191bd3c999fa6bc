import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { anOrder, approvedInvoice, aPayment, clientOf, newKey } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { sharedService } from '../../../support/service.ts'
import { askInTime, type BadRequest, badInput, JSON_TYPE, SUFFIX, refusedAs } from './harness.ts'

/** The request, and the header lines that are added to its own. */
type Lines = readonly (readonly [string, string])[]
type Sent = readonly ['read' | 'theirs' | 'missing' | 'list' | 'create' | 'pay', ...Lines]
type Resources = {
  readonly orderId: string
  readonly othersId: string
  readonly invoiceId: string
  readonly watched: string[]
}

const VERSION = '2026-11-01'
const TENANT = 'bad-input-headers'
/** The UTF-8 bytes of a text, as they are sent. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')
/** The value of a header that is omitted. */
const NO_LINE = '<none>'

const request = ([what, ...lines]: Sent, { orderId, othersId, invoiceId }: Resources): BadRequest => {
  const typed = lines.some(([name]) => name === 'Content-Type') ? [] : [JSON_TYPE]
  const post = (path: string, body: object, headers: Lines): BadRequest => ({
    method: 'POST',
    path,
    headers: [...headers, ...lines].filter(([, value]) => value !== NO_LINE),
    body: JSON.stringify(body),
  })
  switch (what) {
    case 'read':
      return { path: `/orders/${orderId}`, headers: lines }
    case 'theirs':
      return { path: `/orders/${othersId}`, headers: lines }
    case 'missing':
      return { path: `/orders/ord_${SUFFIX}`, headers: lines }
    case 'list':
      return { path: '/orders?limit=1', headers: lines }
    case 'create':
      return post('/orders', anOrder(), typed)
    case 'pay':
      return post('/payments', aPayment(invoiceId), [...typed, ['Idempotency-Key', newKey()]])
  }
}
/** Requests with one line of the header each, named by its value. */
const each = (what: Sent[0], name: string, values: Readonly<Record<string, string>>): Record<string, Sent> =>
  Object.fromEntries(Object.entries(values).map(([odd, value]) => [`${what}, ${name}: ${odd}`, [what, [name, value]]]))
const asIs = (values: readonly string[]): Record<string, string> =>
  Object.fromEntries(values.map(value => [JSON.stringify(value), value]))

const versions = refusedAs<Sent>([400, 'unsupported_api_version'], {
  ...each(
    'list',
    'API-Version',
    asIs(['', '1', 'v1', 'latest', '0', '*', 'null', '2026', '2026-11', '20261101', '2026-11-1']),
  ),
  ...each(
    'list',
    'API-Version',
    asIs(['2026-11-02', '2026-13-01', '1999-01-01', '9999-12-31', '2026-11-01T00:00:00Z']),
  ),
  ...each(
    'list',
    'API-Version',
    asIs([`"${VERSION}"`, `v${VERSION}`, `${VERSION};q=1`, `${VERSION},`, `${VERSION}, ${VERSION}`]),
  ),
  ...each(
    'list',
    'API-Version',
    asIs([`${VERSION}\xa0`, utf8('２０２６-11-01'), '2026/11/01', '01-11-2026', '__proto__', 'constructor']),
  ),
  'API-Version: twice the same': ['list', ['API-Version', VERSION], ['API-Version', VERSION]],
  'API-Version: another one behind': ['read', ['API-Version', VERSION], ['API-Version', '1999-01-01']],
  'API-Version: of a creating request': ['create', ['API-Version', '2099-01-01']],
  'API-Version: of a payment': ['pay', ['API-Version', '2099-01-01']],
})

const positions = refusedAs<Sent>([400, 'precondition_invalid'], {
  ...each(
    'list',
    'If-Min-Position',
    asIs(['', '-1', '+1', '1.0', '1e3', '0x10', 'abc', '1 2', '1,2', '"1"', 'null', '1n', 'NaN']),
  ),
  ...each(
    'list',
    'If-Min-Position',
    asIs(['1;', '*', '1_000', 'W/"1"', '1\xa0', utf8('١'), utf8('１'), 'latest', 'end']),
  ),
  ...each(
    'list',
    'If-Min-Position',
    asIs(['9223372036854775808', '9999999999999999999', '99999999999999999999', '9'.repeat(500)]),
  ),
  'If-Min-Position: twice the same': ['list', ['If-Min-Position', '1'], ['If-Min-Position', '1']],
})

const unacceptable = refusedAs<Sent>([406, 'not_acceptable'], {
  ...each(
    'list',
    'Accept',
    asIs(['text/html', 'text/*', 'application/xml', 'image/png, text/html', 'application/problem+json']),
  ),
  ...each(
    'list',
    'Accept',
    asIs(['application/json;q=0', '*/*;q=0', 'application/*;q=0', 'application/json;q=0, */*;q=0']),
  ),
  ...each(
    'list',
    'Accept',
    asIs(['application/jsonx', 'application/json+x', 'json', 'text/event-stream', 'application', '/']),
  ),
  ...each(
    'list',
    'Accept',
    asIs(['application/json/json', utf8('application/jsön'), 'text/html;q=1, application/json;q=0.000']),
  ),
  'Accept: of a creating request': ['create', ['Accept', 'text/html']],
  'Accept: of a payment': ['pay', ['Accept', 'text/csv']],
})

const types = refusedAs<Sent>([415, 'unsupported_media_type'], {
  'Content-Type: none': ['create', ['Content-Type', NO_LINE]],
  ...each(
    'create',
    'Content-Type',
    asIs(['', 'json', 'application', '*/*', 'application/*', '/json', 'application/', 'text/json']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/merge-patch+json', 'application/jsonx', 'application/json5', 'application/x-json']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/vnd.api+json', 'application/problem+json', 'application/json-seq', 'text/html']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/json/json', 'application /json', 'application/ json', 'application/json x']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/json, application/json', 'application/json,text/plain', 'application/json\xa0']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['"application/json"', 'application\\json', utf8('application/jsön'), '__proto__']),
  ),
  ...each('create', 'Content-Type', asIs(['application/json;charset=utf-16', 'application/json;charset="iso-8859-1"'])),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/json;charset=utf8', 'application/json;charset=', 'application/json;charset']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/json;charset=utf-7', 'application/json; charset = utf-16', 'application/json;=utf-8']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/json;charset="utf-8', 'application/json;charset=utf-8"', "application/json;charset='utf-8'"]),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/json;charset==utf-8', 'application/json;charset=utf-8 x', 'application/json;x y']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/json;charset=utf-8;charset=utf-16', 'application/json;charset=utf-16;charset=utf-8']),
  ),
  ...each(
    'create',
    'Content-Type',
    asIs(['application/json;charset=utf-8;CHARSET=utf-8', `application/json${';a=b'.repeat(3_000)};`.concat('x')]),
  ),
  ...each(
    'create',
    'Content-Encoding',
    asIs(['gzip', 'deflate', 'br', 'zstd', 'compress', 'x-gzip', 'identity', 'gzip, gzip', '', 'utf-8']),
  ),
  'Content-Encoding: of a payment': ['pay', ['Content-Encoding', 'gzip']],
})

const credentials = [
  ...refusedAs<Sent>([400, 'multiple_credentials'], {
    'a token and an API key': ['read', ['X-API-Key', 'lk_test_x_y_z']],
    'a token and an empty API key': ['read', ['X-API-Key', '']],
    'two tokens': ['read', ['Authorization', 'Bearer x.y.z']],
    'a token and a password': ['read', ['Authorization', 'Basic YTpi']],
  }),
  ...refusedAs<Sent>([400, 'bad_request_framing'], {
    'Content-Type twice': ['create', JSON_TYPE, JSON_TYPE],
    'Content-Type twice, the second another': ['create', JSON_TYPE, ['Content-Type', 'text/plain']],
  }),
]

/** Headers that must not give access to resources of another tenant. */
const forged = refusedAs<Sent>([404, 'resource_not_found'], {
  ...each('theirs', 'X-Tenant', asIs([`${TENANT}-2`, '*', ''])),
  ...each('theirs', 'X-Tenant-ID', asIs([`${TENANT}-2`, `${TENANT}, ${TENANT}-2`])),
  ...each('theirs', 'Tenant', asIs([`${TENANT}-2`])),
  ...each('theirs', 'X-Role', asIs(['admin', 'operator', 'auditor'])),
  ...each('theirs', 'X-User', asIs(['admin', 'root'])),
  ...each('theirs', 'X-Scope', asIs(['orders:read', '*'])),
  ...each('theirs', 'X-Forwarded-User', asIs(['tester@bad-input-headers-2'])),
  ...each('theirs', 'X-Forwarded-For', asIs(['127.0.0.1', '::1, 127.0.0.1', 'unknown'])),
  ...each('theirs', 'X-Forwarded-Host', asIs(['localhost', 'evil.example'])),
  ...each('theirs', 'X-Forwarded-Proto', asIs(['https', 'gopher'])),
  ...each('theirs', 'X-Real-IP', asIs(['127.0.0.1'])),
  ...each('theirs', 'Forwarded', asIs(['for=127.0.0.1;host=localhost;proto=https', 'for="[::1]"', ';;=,,'])),
  ...each('theirs', 'X-Original-URL', asIs(['/livez', '/orders'])),
  ...each('theirs', 'X-Rewrite-URL', asIs(['/livez'])),
  ...each('theirs', 'X-HTTP-Method-Override', asIs(['OPTIONS', 'HEAD'])),
  ...each('theirs', 'X-Internal', asIs(['true', '1'])),
  ...each('theirs', 'Cookie', asIs([`tenant=${TENANT}-2; role=admin`])),
  ...each('theirs', 'Origin', asIs(['null', 'http://localhost'])),
  ...each('theirs', 'Via', asIs(['1.1 gateway'])),
})

/** Malformed correlation ids. The harness checks that each response has a well-formed one. */
const correlations = refusedAs<Sent>([404, 'resource_not_found'], {
  ...each(
    'missing',
    'X-Correlation-ID',
    asIs(['', 'short', '1234567', 'x'.repeat(129), 'x'.repeat(4_000), 'with space', 'a,b,c,d,e']),
  ),
  ...each(
    'missing',
    'X-Correlation-ID',
    asIs(['<script>alert(1)</script>', '%0d%0aX-Evil:1', 'abcdefgh;', '{"a":"bcdefg"}', '../../../etc']),
  ),
  ...each(
    'missing',
    'X-Correlation-ID',
    asIs(['abcdefg\xe9', utf8('абвгдежз'), 'abcdefg\x80', 'abc\tdefgh', "';drop table--", '________!']),
  ),
  'X-Correlation-ID: twice': ['missing', ['X-Correlation-ID', 'abcdefgh'], ['X-Correlation-ID', 'ijklmnop']],
  'X-Correlation-ID: twice the same': ['missing', ['X-Correlation-ID', 'abcdefgh'], ['X-Correlation-ID', 'abcdefgh']],
})

const owned = (what: Sent[0], name: string, values: readonly string[], status: number) =>
  Object.entries(each(what, name, asIs(values))).map(
    ([odd, input]) => [odd, input, status, () => ({ tenant_id: TENANT, created_by: 'tester' })] as const,
  )
const whole = (name: string, values: readonly string[]) =>
  Object.entries(each('list', name, asIs(values))).map(([odd, input]) => [odd, input, 200] as const)

badInput<Sent, Resources>({
  set: 'headers',
  least: 60,
  prepare: async (client, service) => {
    const other = clientOf(service.api, await service.token({ tenant: `${TENANT}-2` }))
    const [mine, theirs] = [await client.post('/orders', anOrder()), await other.post('/orders', anOrder())]
    const { invoiceId } = await approvedInvoice(client, 100_000)
    const watched = [`/orders/${mine.body.id}`, `/invoices/${invoiceId}`]
    await eventually(async () => (await client.get('/orders?limit=1')).body.items.length === 1)
    return { orderId: mine.body.id, othersId: theirs.body.id, invoiceId, watched }
  },
  request,
  refused: [...versions, ...positions, ...unacceptable, ...types, ...credentials, ...forged, ...correlations],
  accepted: [
    ...owned('create', 'X-Tenant', [`${TENANT}-2`, '*'], 201),
    ...owned('create', 'X-Tenant-ID', [`${TENANT}-2`], 201),
    ...owned('create', 'X-Role', ['admin'], 201),
    ...owned('create', 'X-User', ['root'], 201),
    ...owned('create', 'X-Forwarded-User', ['root'], 201),
    ...owned('read', 'X-HTTP-Method-Override', ['DELETE', 'PATCH'], 200),
    ...owned('read', 'X-Original-URL', ['/livez', '/orders/x'], 200),
    ...owned('read', 'Range', ['bytes=0-1', 'bytes=9999-', 'items=0-1'], 200),
    ...owned('read', 'API-Version', [VERSION, ` ${VERSION}\t`], 200),
    ...owned(
      'pay',
      'Prefer',
      ['', ',', ';', ';;;', 'respond-async=maybe', 'respond', 'wait', 'wait=', 'wait=-1', 'wait=1.5'],
      201,
    ),
    ...owned(
      'pay',
      'Prefer',
      ['wait=9999999', 'wait=999999', 'wait=soon', 'handling=strict', 'x="a, respond-async"'],
      201,
    ),
    ...owned(
      'pay',
      'Prefer',
      ['x=", respond-async, "', 'x="\\", respond-async, "', 'x="open, respond-async', '"', '\\'],
      201,
    ),
    ...owned('create', 'Content-Type', ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'], 201),
    ...owned(
      'create',
      'Content-Type',
      ['application/json;v=1', 'application/json ; a=b ;c=d', 'application/json;', 'application/json;;'],
      201,
    ),
    ...owned(
      'create',
      'Content-Type',
      ['application/json; v="a;charset=utf-16"', 'application/json;;charset=utf-8;'],
      201,
    ),
    ...whole('Accept', [
      '*/*',
      'application/*',
      'application/json;q=0.1',
      'text/html, */*;q=0.1',
      'APPLICATION/JSON',
      ';, application/json',
    ]),
    ...whole('If-Min-Position', ['0', '1', '00000000000000000001'.slice(1)]),
    ...whole('Cookie', ['a=b', '__proto__=x', ';;;=']),
  ],
})

describe('traceparent', () => {
  const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
  const SPAN = '00f067aa0ba902b7'

  it('is stored in the events when it is valid, and ignored when it is malformed', async () => {
    const service = await sharedService()
    const token = await service.token({ tenant: TENANT })
    const store = openEventStore({ connectionString: service.addresses.event_store })
    const storedFor = async (...lines: string[]): Promise<unknown> => {
      const created = await askInTime(service.api, {
        method: 'POST',
        path: '/orders',
        headers: [
          ['Authorization', `Bearer ${token}`],
          JSON_TYPE,
          ...lines.map(line => ['traceparent', line] as const),
        ],
        body: JSON.stringify(anOrder()),
      })
      expect(created.status, created.text).to.equal(201)
      for await (const { metadata } of store.readStream(`order-${created.body.id}`)) return metadata['traceparent']
      throw new Error('An order without an event.')
    }
    const right = `00-${TRACE}-${SPAN}-01`
    expect(await storedFor(right)).to.equal(right)
    for (const wrong of [
      ...['', '00', right.toUpperCase(), `ff-${TRACE}-${SPAN}-01`, `00-${'0'.repeat(32)}-${SPAN}-01`],
      ...[`00-${TRACE}-${'0'.repeat(16)}-01`, `00-${TRACE}-${SPAN}`, `00-${TRACE}-${SPAN}-01-x`, `${right}, ${right}`],
      ...[`00-${TRACE.slice(1)}-${SPAN}-01`, `00-${TRACE}g-${SPAN}-01`, `00_${TRACE}_${SPAN}_01`, `"${right}"`],
      ...['x'.repeat(4_000), '<script>', "'; drop table facts_v1; --"],
    ])
      expect(await storedFor(wrong), wrong).to.equal(undefined)
    expect(await storedFor(right, right), 'twice').to.equal(undefined)
    const unsampled = `00-${TRACE}-${SPAN}-00`
    // The known part of a later version of traceparent is stored in the known version.
    for (const [later, read] of [
      [`01-${TRACE}-${SPAN}-01`, right],
      [`cc-${TRACE}-${SPAN}-01-what-a-later-version-adds`, right],
      [`fe-${TRACE}-${SPAN}-00-`, unsampled],
      [`01-${TRACE}-${SPAN}-fe`, unsampled],
      [`01-${TRACE}-${SPAN}-ff-01`, right],
      [`01-${TRACE}-${SPAN}-01.more`, undefined],
      [`01-${TRACE}-${SPAN}`, undefined],
      [`01-${'0'.repeat(32)}-${SPAN}-01-x`, undefined],
      [`ff-${TRACE}-${SPAN}-01-x`, undefined],
    ])
      expect(await storedFor(later ?? ''), later).to.equal(read)
    expect(await storedFor(`01-${TRACE}-${SPAN}-01-x`, right), 'a later version and another line').to.equal(undefined)
    await store.close()
  })
})
