import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { anOrder, type Client, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService, writtenSince } from '../../support/service.ts'
import { dial, exchange } from '../../support/rawHttp.ts'

/**
 * Malformed HTTP that no client library would send, and that the service and a proxy before it might parse differently.
 */

const HOST = 'Host: {host}'
const TOKEN = 'Authorization: Bearer {token}'
const JSON_TYPE = 'Content-Type: application/json'
const CHUNKED = 'Transfer-Encoding: chunked'
const MISSING = 'ord_00000000000000000000000000'
const TENANT = 'framing'

const lines = (...all: readonly string[]): string => [...all, '', ''].join('\r\n')
const requested = (line: string, ...fields: readonly string[]): string => lines(line, HOST, TOKEN, ...fields)
const get = (...fields: readonly string[]): string => requested('GET /orders?limit=1 HTTP/1.1', ...fields)
const at = (target: string): string => requested(`GET ${target} HTTP/1.1`)
const post = (body: string, ...fields: readonly string[]): string =>
  requested('POST /orders HTTP/1.1', JSON_TYPE, ...fields) + body
const chunks = (...parts: readonly string[]): string => post(parts.map(part => `${part}\r\n`).join(''), CHUNKED)
const ORDER = JSON.stringify(anOrder())
/**
 * A well-formed request in the body of another one: it is executed only if the end of the outer request is parsed
 * wrongly.
 */
const SMUGGLED = post(ORDER, `Content-Length: ${ORDER.length}`)

const BAD = '400 bad_request_framing'
/** An empty object is no order. */
const INVALID_BODY = '400 validation_failed'
const NO_ROUTE = '404 route_not_found'

/** The bytes that are sent, and the expected responses: status and code. */
type Case = readonly [what: string, bytes: string, ...answers: readonly string[]]

const lengths: readonly Case[] = [
  ['a length and chunks', post(`0\r\n\r\n${SMUGGLED}`, 'Content-Length: 6', CHUNKED), BAD],
  ['chunks and a length', post(`0\r\n\r\n${SMUGGLED}`, CHUNKED, 'Content-Length: 6'), BAD],
  ['chunks, a length and the rest of another request', post(`5c\r\n${SMUGGLED}`, CHUNKED, 'Content-Length: 4'), BAD],
  ['the same length twice', post('{}', 'Content-Length: 2', 'Content-Length: 2'), BAD],
  ['two lengths', post(`{}${SMUGGLED}`, 'Content-Length: 2', `Content-Length: ${2 + SMUGGLED.length}`), BAD],
  ['a list of lengths', post('{}', 'Content-Length: 2, 2'), BAD],
  ['a negative length', post('{}', 'Content-Length: -2'), BAD],
  ['a length with a plus', post('{}', 'Content-Length: +2'), BAD],
  ['a hexadecimal length', post('{}', 'Content-Length: 0x2'), BAD],
  ['a length with a fraction', post('{}', 'Content-Length: 2.0'), BAD],
  ['a length with an exponent', post('{}', 'Content-Length: 2e0'), BAD],
  ['a length with a space in it', post('{}', 'Content-Length: 2 2'), BAD],
  ['a length that is empty', post('{}', 'Content-Length: '), BAD],
  ['a length beyond 64 bits', post('{}', 'Content-Length: 99999999999999999999999'), BAD],
  ['a length beyond the exact integers', post('{}', 'Content-Length: 9007199254740993'), '413 payload_too_large'],
  ['a length with leading zeros', post('{}', 'Content-Length: 0002'), INVALID_BODY],
  ['a space before the colon of the length', post('{}', 'Content-Length : 2'), BAD],
  ['a body that is longer than announced', post('{}xxxx', 'Content-Length: 2'), INVALID_BODY, BAD],
  ['a body without a length', post('{}'), '400 invalid_json', BAD],
  ['a body where none is permitted', get(`Content-Length: ${SMUGGLED.length}`) + SMUGGLED, BAD],
  ['chunks where no body is permitted', `${get(CHUNKED)}2\r\n{}\r\n0\r\n\r\n`, BAD],
  ['an empty body where none is permitted', get('Content-Length: 0'), '200'],
]

const codings: readonly Case[] = [
  ['two transfer codings in two lines', post(`0\r\n\r\n${SMUGGLED}`, CHUNKED, 'Transfer-Encoding: identity'), BAD],
  ['chunked twice in two lines', post('2\r\n{}\r\n0\r\n\r\n', CHUNKED, CHUNKED), BAD],
  ...[
    ...['chunked, chunked', 'chunked, identity', 'identity', 'identity, chunked', 'gzip, chunked', 'xchunked'],
    ...['\x0bchunked', '"chunked"', '', 'chunked;q=1', 'chunked,', ',chunked', 'chunked\x00', 'chun ked'],
  ].map(
    (coding): Case => [
      `the coding ${JSON.stringify(coding)}`,
      post(`2\r\n{}\r\n0\r\n\r\n${SMUGGLED}`, `Transfer-Encoding: ${coding}`),
      BAD,
    ],
  ),
  ['no coding and a length', post('{}', 'Transfer-Encoding: ', 'Content-Length: 2'), BAD],
  ['chunks in HTTP/1.0', chunks('2', '{}', '0', '').replace('HTTP/1.1', 'HTTP/1.0'), BAD],
  ['a tab before the coding', post('2\r\n{}\r\n0\r\n\r\n', 'Transfer-Encoding:\tchunked'), INVALID_BODY],
  ['the coding in capitals', post('2\r\n{}\r\n0\r\n\r\n', 'TRANSFER-ENCODING: CHUNKED'), INVALID_BODY],
]

const chunkings: readonly Case[] = [
  ...['xyz', '-2', '+2', '0x2', '2 ', ' 2', '', '10000000000000002', '2,2', '٢'].map(
    (size): Case => [`a chunk of the size ${JSON.stringify(size)}`, `${chunks(size, '{}', '0', '')}${SMUGGLED}`, BAD],
  ),
  ['a chunk that is longer than it says', `${chunks('1', '{}', '0', '')}${SMUGGLED}`, BAD],
  ['chunks with bare line feeds', post('2\n{}\n0\n\n', CHUNKED), BAD],
  ['a chunk that ends in a line feed', post('2\r\n{}\n0\r\n\r\n', CHUNKED), BAD],
  ['an extension that ends in a line feed', post('2;a\n{}\r\n0\r\n\r\n', CHUNKED), BAD],
  ['a chunk extension', chunks('2;a=b', '{}', '0;c', ''), INVALID_BODY],
  ['a quoted chunk extension', chunks('2;a="b;c"', '{}', '0', ''), INVALID_BODY],
  ['a chunk extension of 20 kB', chunks(`2;a=${'b'.repeat(20_000)}`, '{}', '0', ''), BAD],
  ['a trailer', chunks('2', '{}', '0', 'X-Trailer: 1', ''), INVALID_BODY],
  ['a length in the trailers', chunks('2', '{}', '0', 'Content-Length: 5', ''), BAD],
  ['a trailer with a space in its name', chunks('2', '{}', '0', 'X Trailer: 1', ''), BAD],
  ['a trailer of 30 kB', chunks('2', '{}', '0', `X-Trailer: ${'x'.repeat(30_000)}`, ''), '431 headers_too_large'],
  [
    'a credential in the trailers',
    `${lines('POST /orders HTTP/1.1', HOST, JSON_TYPE, CHUNKED)}2\r\n{}\r\n0\r\n${TOKEN}\r\n\r\n`,
    '401 unauthenticated',
  ],
]

const heads: readonly Case[] = [
  ['a folded header', get('X-A: b', ' c'), BAD],
  ['a folded transfer coding', post('2\r\n{}\r\n0\r\n\r\n', 'Transfer-Encoding:', ' chunked'), BAD],
  ['a first header that is folded', lines('GET /orders HTTP/1.1', ` ${HOST}`, TOKEN), BAD],
  ['bare line feeds', get().replaceAll('\r\n', '\n'), BAD],
  ['a request line that ends in a line feed', get().replace('\r\n', '\n'), BAD],
  ['a header that ends in a line feed', get('X-A: b\nX-B: c'), BAD],
  ['a head that ends in a line feed', get().replace(/\r\n$/, '\n'), BAD],
  ['a bare carriage return in a header', get('X-A: b\rTransfer-Encoding: chunked'), BAD],
  ['a carriage return in a name', get('X\r-A: b'), BAD],
  ['two carriage returns', get('X-A: b\r'), BAD],
  ['U+0000 in a header', get('X-A: b\x00c'), BAD],
  ['U+0000 in a name', get('X\x00A: b'), BAD],
  ['a control character in a header', get('X-A: b\x01c'), BAD],
  ['a header without a colon', get('NoColon'), BAD],
  ['a header without a name', get(': x'), BAD],
  ['parentheses in a name', get('X(A): x'), BAD],
  ['two hosts', get(HOST), BAD],
  ['no host', lines('GET /orders HTTP/1.1', TOKEN), BAD],
  ['no host in HTTP/1.0', lines('GET /orders HTTP/1.0', TOKEN), BAD],
  ...['', 'a b', 'a, b', 'a@b', 'a/b', 'a:99999x', '[::1', 'a\\b', 'http://a'].map(
    (host): Case => [
      `the host ${JSON.stringify(host)}`,
      lines('GET /orders?limit=1 HTTP/1.1', `Host: ${host}`, TOKEN),
      BAD,
    ],
  ),
  ['the host [::1]:80', lines('GET /orders?limit=1 HTTP/1.1', 'Host: [::1]:80', TOKEN), '200'],
  ['two content types', post('{}', 'Content-Type: text/plain', 'Content-Length: 2'), BAD],
  ['two credentials', get(TOKEN), '400 multiple_credentials'],
  ['headers of 17 kB', get(`X-A: ${'x'.repeat(17_000)}`), '431 headers_too_large'],
  ['headers of 40 kB', get(`X-A: ${'x'.repeat(40_000)}`), '431 headers_too_large'],
  ['9,000 headers', get(...Array.from({ length: 9_000 }, () => 'a:b')), '431 headers_too_large'],
  ['a second host behind 900 headers', get(...Array.from({ length: 900 }, () => 'a:'), HOST), BAD],
  ['an expectation', post('{}', 'Expect: 100-continue', 'Content-Length: 2'), INVALID_BODY],
  ['an unknown expectation', post('{}', 'Expect: 200-ok', 'Content-Length: 2'), BAD],
  ['an upgrade to WebSocket', get('Connection: Upgrade', 'Upgrade: websocket'), '200'],
  ['an upgrade to HTTP/2', get('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AA'), '200'],
  ['an upgrade with a body', post('{}', 'Connection: Upgrade', 'Upgrade: a', 'Content-Length: 2'), INVALID_BODY],
  ['Connection: close, keep-alive', get('Connection: close, keep-alive'), '200'],
]

const targets: readonly Case[] = [
  ['a whole URL', at('http://{host}/orders?limit=1'), '200'],
  ['a whole URL of another host', at('HTTPS://another.example/orders?limit=1'), '200'],
  ['a whole URL without a path', at('http://{host}'), '200'],
  ...[
    ...['ftp://{host}/orders', 'file:///etc/passwd', 'http://[/orders', 'http://a:b@{host}/orders', 'http:///orders'],
    ...['{host}', 'another.example:443', '*', 'orders', '', '/orders?limit=1#x', '/orders#x', '\\orders', '?limit=1'],
    ...['/orders/é', '/orders\x00', '/orders x', '/orders\x7f', '/orders\tx'],
  ].map((target): Case => [`the target ${JSON.stringify(target)}`, at(target), BAD]),
  ...[
    ...['/orders%2Fx', '/%2Forders', '/x/../orders', '/x/%2e%2e/orders', '/./orders', '//orders', '/\\orders'],
    ...['/orders%00', '/orders;x=1', '/orders%3Fx', '/orders%3A', 'http://{host}//orders'],
  ].map((target): Case => [`the target ${JSON.stringify(target)}`, at(target), NO_ROUTE]),
  ['%00 for an id', at('/orders/%00'), '404 resource_not_found'],
  ['an id and %00', at(`/orders/${MISSING}%00`), '404 resource_not_found'],
  ['an id behind an encoded slash', at(`/orders/x%2F${MISSING}`), '404 resource_not_found'],
  ['an encoded colon', requested(`POST /orders/${MISSING}%3acancel HTTP/1.1`), '404 resource_not_found'],
  ['two spaces before the target', get().replace(' ', '  '), '200'],
  ...[9_000, 20_000, 100_000].map(
    (size): Case => [`a target of ${size} characters`, at(`/orders?x=${'x'.repeat(size)}`), '414 uri_too_long'],
  ),
]

const methods: readonly Case[] = [
  ['CONNECT', requested('CONNECT {host} HTTP/1.1'), BAD],
  ['CONNECT with a path', requested('CONNECT /orders HTTP/1.1') + SMUGGLED, BAD],
  ['TRACE', requested('TRACE /orders HTTP/1.1', 'X-Secret: x'), '405 method_not_allowed'],
  ['OPTIONS *', requested('OPTIONS * HTTP/1.1'), NO_ROUTE],
  ...['PROPFIND', 'PURGE', 'M-SEARCH', 'QUERY', 'LINK'].map(
    (method): Case => [method, requested(`${method} /orders HTTP/1.1`), '405 method_not_allowed'],
  ),
  ...['FOO', 'get', 'GETT', 'G\x00T', 'PRI', 'DESCRIBE', 'A'.repeat(40_000)].map(
    (method): Case => [
      `the method ${JSON.stringify(method.slice(0, 9))}`,
      requested(`${method} /orders HTTP/1.1`),
      BAD,
    ],
  ),
  ...['HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/3.0', 'HTTP/1.10', 'HTTQ/1.1', 'http/1.1', 'HTTP/ 1.1', ''].map(
    (version): Case => [`the version ${JSON.stringify(version)}`, requested(`GET /orders?limit=1 ${version}`), BAD],
  ),
  ['HTTP/1.0', requested('GET /orders?limit=1 HTTP/1.0'), '200'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', BAD],
  ['a greeting of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', BAD],
  ['the PROXY protocol', `PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n${get()}`, BAD],
  ['empty lines before a request', `\r\n\r\n${get()}`, '200'],
  ['tabs between the parts of the request line', requested('GET\t/orders\tHTTP/1.1'), BAD],
]

const inARow: readonly Case[] = [
  ['two requests', get() + get(), '200', '200'],
  ['a request behind one that is refused', at('/x') + get(), NO_ROUTE, '200'],
  ['a request behind a malformed one', get(HOST) + SMUGGLED, BAD],
  ['malformed bytes behind a request', `${get()}GARB AGE\r\n\r\n`, '200', BAD],
  ['malformed bytes behind three requests', `${get()}${at('/x')}${get()}\x00`, '200', NO_ROUTE, '200', BAD],
  ['broken chunks behind a request', `${get()}${chunks('zz', '{}')}`, '200', BAD],
  ['a target that is too long behind a request', `${get()}${at(`/${'x'.repeat(9_000)}`)}`, '200', '414 uri_too_long'],
]

const halves: readonly Case[] = [
  ['no bytes', ''],
  ['half a request line', 'GET /ord', BAD],
  ['a request of HTTP/0.9', 'GET /orders\r\n', BAD],
  ['half a head', get().slice(0, -4), BAD],
  ['a body that is shorter than announced', post('{}', 'Content-Length: 50'), BAD],
  ['a body that is cut off within its order', SMUGGLED.slice(0, -1), BAD],
  ['chunks without their end', post('2\r\n{}\r\n', CHUNKED), BAD],
  ['a chunk that is shorter than it says', chunks('9', '{}', '0', ''), BAD],
  ['half a request behind a whole one', `${get()}${SMUGGLED.slice(0, 40)}`, '200', BAD],
]

const groups = { lengths, codings, chunkings, heads, targets, methods, inARow, halves }

describe('raw HTTP', () => {
  let service: TestService
  let client: Client
  let store: EventStore
  let token: string
  let position: bigint
  before(async () => {
    service = await sharedService()
    token = await service.token({ tenant: TENANT })
    client = clientOf(service.api, token)
    store = openEventStore({ connectionString: service.addresses.event_store })
    position = await store.head()
  })
  after(() => store.close())

  const filled = (bytes: string): string =>
    bytes.replaceAll('{host}', new URL(service.api).host).replaceAll('{token}', token)
  const outcomeOf = async (bytes: string, answers: number, end: boolean) => {
    const all = await exchange(service.api, filled(bytes), { answers: end ? answers + 1 : answers, end })
    return {
      ...all,
      codes: all.answers.map(({ status, body }) => (status < 400 ? `${status}` : `${status} ${body.code}`)),
    }
  }

  for (const [group, cases] of Object.entries(groups))
    describe(group, () => {
      for (const [what, bytes, ...expected] of cases)
        it(what, async () => {
          const { codes, closed, answers } = await outcomeOf(bytes, expected.length, group === 'halves')
          expect(codes, JSON.stringify(bytes.slice(0, 200))).to.deep.equal(expected)
          if (expected.at(-1) === BAD || group === 'halves') expect(closed, 'the connection stays open').to.equal(true)
          for (const { text } of answers) expect(text).not.to.match(/node:|HPE_|Error:|<html/)
        })
    })

  describe('together', () => {
    it('write no event', async () => {
      expect(await writtenSince(store, position, TENANT)).to.deep.equal([])
      expect((await client.get('/orders')).body.items).to.deep.equal([])
      const count = Object.values(groups).flat().length
      expect(new Set(Object.values(groups).flatMap(cases => cases.map(([, bytes]) => bytes))).size).to.equal(count)
      process.stdout.write(`      ${count} raw requests\n`)
    })
  })

  describe('a response', () => {
    it('to a command is sent before the error response to the malformed bytes after it', async () => {
      const { codes } = await outcomeOf(`${SMUGGLED}GARB AGE\r\n\r\n`, 2, false)
      expect(codes).to.deep.equal(['201', BAD])
    })

    it('follows 100 Continue', async () => {
      const expecting = ['Expect: 100-Continue', `Content-Length: ${ORDER.length}`, `Idempotency-Key: ${newKey()}`]
      const { codes, interim } = await outcomeOf(post(ORDER, ...expecting), 1, false)
      expect([codes, interim]).to.deep.equal([['201'], [100]])
    })

    it('is the only effect of a malformed body where no body is permitted', async () => {
      const order = await client.post('/orders', anOrder())
      const line = `DELETE /orders/${order.body.id} HTTP/1.1`
      for (const body of ['zz\r\n', '2\r\n{}\r\n0\r\n\r\n', '2\r\n']) {
        const { codes } = await outcomeOf(requested(line, 'If-Match: *', CHUNKED) + body, 1, false)
        expect(codes, body).to.deep.equal([BAD])
      }
      expect((await client.get(`/orders/${order.body.id}`)).body.state).to.equal('open')
    })

    it('that is streamed continues without an error response to the malformed bytes after its request', async () => {
      const socket = await dial(service.api)
      let text = ''
      socket.on('data', chunk => (text += String(chunk)))
      socket.write(filled(requested('GET /events HTTP/1.1', 'Accept: text/event-stream')))
      await eventually(async () => text.includes('event: order.created'))
      socket.write('GARB AGE\r\n\r\n'.repeat(3))
      const { body: later } = await client.post('/orders', anOrder())
      await eventually(async () => text.includes(later.id))
      expect(text).not.to.include('bad_request_framing')
      socket.destroy()
    })
  })
})
