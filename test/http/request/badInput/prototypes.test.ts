import { expect } from 'chai'
import { mergePatch } from '../../../../streams/mergePatch.ts'
import { anOrder, approvedInvoice, aPayment, newKey, pay } from '../../../support/client.ts'
import { ANY_VERSION, type BadRequest, badInput, JSON_TYPE, plain, refusedAs } from './harness.ts'

/** Input that pollutes prototypes when it is copied naively. The member that would be added to all objects is `polluted`. */
type Attack = readonly [where: keyof typeof WHERE, text: string]
type Resources = {
  readonly orderId: string
  readonly invoiceId: string
  readonly paymentId: string
  readonly watched: string[]
}

const LINES = '"lines":[{"sku":"a","quantity":1,"unit_amount":1}]'
const ORDER = `"currency":"USD",${LINES}`
const POLLUTED = '{"polluted":"yes"}'
const MERGE = ['Content-Type', 'application/merge-patch+json'] as const

const posting =
  (path: (on: Resources) => string, body: (text: string, on: Resources) => string) =>
  (text: string, on: Resources): BadRequest => ({
    method: 'POST',
    path: path(on),
    headers: [JSON_TYPE, ANY_VERSION, ['Idempotency-Key', newKey()]],
    body: body(text, on),
  })

const WHERE = {
  order: posting(
    () => '/orders',
    text => `{${ORDER},${text}}`,
  ),
  'order alone': posting(
    () => '/orders',
    text => text,
  ),
  line: posting(
    () => '/orders',
    text => `{"currency":"USD","lines":[{"sku":"a","quantity":1,"unit_amount":1,${text}}]}`,
  ),
  metadata: posting(
    () => '/orders',
    text => `{${ORDER},"metadata":{${text}}}`,
  ),
  invoice: posting(
    () => '/invoices',
    (text, { orderId }) => `{"order_id":"${orderId}",${text}}`,
  ),
  approval: posting(
    ({ invoiceId }) => `/invoices/${invoiceId}:approve`,
    text => `{${text}}`,
  ),
  payment: posting(
    () => '/payments',
    (text, { invoiceId }) => `{"invoice_id":"${invoiceId}","amount":1,"currency":"USD",${text}}`,
  ),
  refund: posting(
    ({ paymentId }) => `/payments/${paymentId}:refund`,
    text => `{"reason":"x",${text}}`,
  ),
  export: posting(
    () => '/exports',
    text => `{"resource":"orders","format":"csv",${text}}`,
  ),
  filters: posting(
    () => '/exports',
    text => `{"resource":"orders","format":"csv","filters":{${text}}}`,
  ),
  subscription: posting(
    () => '/subscriptions',
    text => `{"types":["order.created"],"start":"now",${text}}`,
  ),
  start: posting(
    () => '/subscriptions',
    text => `{"types":["order.created"],"start":{${text}}}`,
  ),
  'API key': posting(
    () => '/api-keys',
    text => `{"name":"x","scopes":["orders:read"],${text}}`,
  ),
  quota: posting(
    () => '/api-keys',
    text => `{"name":"x","scopes":["orders:read"],"quota":{"requests":1,"window_seconds":1,${text}}}`,
  ),
  patch: (text: string, { orderId }: Resources): BadRequest => ({
    method: 'PATCH',
    path: `/orders/${orderId}`,
    headers: [MERGE, ANY_VERSION],
    body: text,
  }),
  query: (text: string): BadRequest => ({ path: `/orders?${text}`, headers: [] }),
  path: (text: string): BadRequest => ({ path: text, headers: [] }),
} as const

const of = (where: Attack[0], texts: readonly string[]): Record<string, Attack> =>
  Object.fromEntries(Object.entries(plain(texts, `${where} `)).map(([name, text]) => [name, [where, text]]))

const UNFIT = [400, 'validation_failed'] as const
const PROTO = `"__proto__":${POLLUTED}`
const CONSTRUCTOR = `"constructor":{"prototype":${POLLUTED}}`

badInput<Attack, Resources>({
  set: 'prototypes',
  isInProcess: true,
  least: 40,
  prepare: async client => {
    const { body: order } = await client.post('/orders', { ...anOrder(), metadata: { kept: 'yes' } })
    const { invoiceId } = await approvedInvoice(client)
    const { body: payment } = await pay(client, aPayment(invoiceId))
    const watched = [`/orders/${order.id}`, `/invoices/${invoiceId}`, `/payments/${payment.id}`, '/api-keys']
    return { orderId: order.id, invoiceId, paymentId: payment.id, watched }
  },
  request: ([where, text], on) => WHERE[where](text, on),
  refused: [
    ...refusedAs<Attack>(UNFIT, {
      ...of('order', [
        PROTO,
        CONSTRUCTOR,
        `"prototype":${POLLUTED}`,
        '"__proto__":null',
        '"__proto__":[]',
        '"__proto__":"x"',
      ]),
      ...of('order', [
        `"\\u005f_proto__":${POLLUTED}`,
        `"\\u005F\\u005Fproto\\u005f_":${POLLUTED}`,
        `"__proto__":{${PROTO}}`,
      ]),
      ...of('order', [
        '"toString":"x"',
        '"valueOf":1',
        '"hasOwnProperty":true',
        '"toJSON":{}',
        '"then":{}',
        '"length":1',
      ]),
      ...of('order', ['"__defineGetter__":"x"', '"__lookupSetter__":"x"', '"isPrototypeOf":"x"', '"polluted":"yes"']),
      ...of('order', [
        '"constructor.prototype.polluted":"yes"',
        '"__proto__.polluted":"yes"',
        '"__proto__[polluted]":"yes"',
      ]),
      ...of('order', ['"metadata":{"constructor":{"prototype":{"polluted":"yes"}}}', '"metadata":[{"__proto__":{}}]']),
      ...of('order alone', [`{${PROTO},${ORDER}}`, `[{${PROTO}}]`, `{"lines":{${PROTO}},"currency":"USD"}`]),
      ...of('order alone', [`{${PROTO.replace(POLLUTED, `{${ORDER}}`)}}`, `{"currency":{${CONSTRUCTOR}},${LINES}}`]),
      ...of('line', [PROTO, CONSTRUCTOR, '"__proto__":{"unit_amount":0}', '"prototype":{}']),
      ...of('metadata', [PROTO, CONSTRUCTOR, '"a":"b","__proto__":"x"', '"\\u005f_proto__":"x"', '"toString":null']),
      ...of('invoice', [PROTO, CONSTRUCTOR]),
      ...of('approval', [PROTO, CONSTRUCTOR]),
      ...of('payment', [PROTO, CONSTRUCTOR, '"__proto__":{"settlement":"deferred"}', `"metadata":{${PROTO}}`]),
      ...of('refund', [PROTO, CONSTRUCTOR]),
      ...of('export', [PROTO, CONSTRUCTOR]),
      ...of('filters', [PROTO, CONSTRUCTOR, '"__proto__":{"state":"open"}']),
      ...of('subscription', [PROTO, CONSTRUCTOR]),
      ...of('start', [PROTO, CONSTRUCTOR, `"position":"1",${PROTO}`]),
      ...of('API key', [PROTO, CONSTRUCTOR, '"__proto__":{"scopes":["keys:manage"]}']),
      ...of('quota', [PROTO, CONSTRUCTOR]),
      ...of('patch', [`{${PROTO}}`, `{${CONSTRUCTOR}}`, `{"metadata":{${PROTO}}}`, `{"metadata":{${CONSTRUCTOR}}}`]),
      ...of('patch', ['{"metadata":{"__proto__":null}}', '{"__proto__":null}', `{"metadata":{"a":{${PROTO}}}}`]),
      ...of('patch', [`{"description":{${PROTO}}}`, '{"constructor":null}', '{"toString":null}', `[{${PROTO}}]`]),
      ...of('query', ['state=__proto__', 'currency=constructor', 'limit=__proto__', 'created_after=__proto__']),
    }),
    ...refusedAs<Attack>([400, 'unknown_parameter'], {
      ...of('query', [
        '__proto__=x',
        '__proto__[polluted]=yes',
        '__proto__.polluted=yes',
        'constructor=x',
        'toString=x',
      ]),
      ...of('query', ['constructor[prototype][polluted]=yes', '%5F%5Fproto%5F%5F=x', 'hasOwnProperty=x', 'valueOf=x']),
      ...of('query', ['__proto__=x&__proto__=y', 'polluted=yes', 'state[__proto__]=open', 'limit=1&prototype=x']),
    }),
    ...refusedAs<Attack>(
      [404, 'resource_not_found'],
      of('path', ['/orders/__proto__', '/problems/__proto__', '/problems/hasOwnProperty', '/schemas/__proto__']),
    ),
    ...refusedAs<Attack>(
      [404, 'route_not_found'],
      of('path', ['/__proto__', '/constructor/prototype', '/orders/x/__proto__']),
    ),
  ],
  accepted: [
    [
      'names of Object.prototype as names of metadata',
      [
        'metadata',
        '"constructor":"a","prototype":"b","toString":"c","valueOf":"d","hasOwnProperty":"e","polluted":"f"',
      ],
      201,
      () => ({
        metadata: { constructor: 'a', prototype: 'b', toString: 'c', valueOf: 'd', hasOwnProperty: 'e', polluted: 'f' },
      }),
    ],
    [
      'names of Object.prototype in a merge patch of metadata',
      ['patch', '{"metadata":{"constructor":"a","toString":"b"}}'],
      200,
      () => ({ metadata: { kept: 'yes', constructor: 'a', toString: 'b' } }),
    ],
    [
      'the removal of such names',
      ['patch', '{"metadata":{"constructor":null,"toString":null}}'],
      200,
      () => ({ metadata: { kept: 'yes' } }),
    ],
    ['the removal of an absent one, which stays on all objects', ['patch', '{"metadata":{"valueOf":null}}'], 200],
  ],
})

describe('merge patch', () => {
  for (const patch of [`{${PROTO}}`, `{"a":{${PROTO}}}`, `{${CONSTRUCTOR}}`, '{"__proto__":null}', '{"toString":null}'])
    it(`alone changes no other object with ${patch}`, () => {
      mergePatch({ a: { b: 'c' } }, JSON.parse(patch))
      expect(Reflect.get({}, 'polluted')).to.equal(undefined)
      expect(Reflect.get(Object, 'polluted')).to.equal(undefined)
      expect(Reflect.has({}, 'toString')).to.equal(true)
    })
})
