import { expect } from 'chai'
import { type Answer, aPayment, approvedInvoice, anOrder, newKey, pay } from '../../../support/client.ts'
import { exchange, send } from '../../../support/rawHttp.ts'
import { type BadInputFixtures, type Case, refusesAll, type Refusal, acceptsAll } from './cases.ts'
import {
  BY_OTHER_IDS,
  NO_ACTIONS,
  NO_IDS,
  NO_IDS_OF_ACTIONS,
  NO_ROUTES,
  NO_TARGETS,
  OF_OTHERS,
  UNDECODABLE,
} from './pathTables.ts'

/**
 * Ids and paths are matched exactly, in case and slashes. The requests are sent over a socket, since fetch would
 * normalize them.
 */

const TENANT = 'bad-paths'

const ids: Record<string, string> = {}
let token = ''

const prepare = async ({ client, service }: BadInputFixtures): Promise<void> => {
  const { orderId, invoiceId } = await approvedInvoice(client)
  const paid = await pay(client, aPayment(invoiceId))
  const open = await client.post('/orders', anOrder())
  const invoiced = await client.post('/orders', anOrder())
  const draft = await client.post('/invoices', { order_id: invoiced.body.id })
  const reply = await client.post('/exports', { resource: 'orders', format: 'csv' })
  token = await service.token({ tenant: TENANT })
  Object.assign(ids, {
    ord: open.body.id,
    paidOrd: orderId,
    inv: draft.body.id,
    approved: invoiceId,
    pay: paid.body.id,
    op: reply.body.id,
  })
}

const filled = (path: string): string =>
  path.replaceAll(/<(\w+)(\.?)>/g, (_, name: string, suffix: string) => {
    const id = ids[name] ?? ''
    return suffix ? id.slice(id.indexOf('_') + 1) : id
  })

/** A request with everything that any method needs, so that only the path is wrong. */
const sending =
  (method: string, path: string) =>
  ({ service }: BadInputFixtures): Promise<Answer> => {
    const hasBody = method === 'POST' || method === 'PATCH'
    return send(service.api, {
      method,
      path: filled(path),
      headers: [
        ['Authorization', `Bearer ${token}`],
        ['If-Match', '*'],
        ['Idempotency-Key', newKey()],
        ...(hasBody ? [['Content-Type', `application/${method === 'PATCH' ? 'merge-patch+' : ''}json`] as const] : []),
      ],
      ...(hasBody ? { body: /(?::|%3a)(?:void|refund)$/i.test(path) ? '{"reason":"none"}' : '{}' } : {}),
    })
  }

const NO_RESOURCE: Refusal = [404, 'resource_not_found']
const NO_TARGET: Refusal = [400, 'bad_request_framing']
const NO_ROUTE: Refusal = [404, 'route_not_found']

const one = (refusal: Refusal, method: string, path: string, name: string): Case => ({
  name,
  refusal,
  send: sending(method, path),
})

const unknown: readonly Case[] = [
  ...Object.entries(NO_IDS).map(([name, id]) => one(NO_RESOURCE, 'GET', `/orders/${id}`, `GET an id ${name}`)),
  ...Object.entries(UNDECODABLE).map(([name, id]) => one(NO_RESOURCE, 'GET', `/orders/${id}`, `GET an id: ${name}`)),
  ...Object.entries(NO_ROUTES).map(([name, path]) => one(NO_ROUTE, 'GET', path, `GET: ${name}`)),
  ...Object.entries(NO_ACTIONS).map(([name, action]) =>
    one(NO_ROUTE, 'POST', `/invoices/<inv>${action}`, `POST an approval ${name}`),
  ),
  ...Object.entries(NO_IDS_OF_ACTIONS).map(([name, action]) =>
    one(NO_RESOURCE, 'POST', `/invoices/<inv>${action}`, `POST an approval ${name}`),
  ),
  ...Object.entries(NO_TARGETS).map(([name, path]) => one(NO_TARGET, 'GET', path, `GET ${name}`)),
  ...Object.entries(OF_OTHERS).map(([name, path]) => one(NO_ROUTE, 'POST', path, `POST ${name}`)),
  ...Object.entries(BY_OTHER_IDS).map(([name, path]) => one(NO_RESOURCE, name.split(' ')[0] ?? '', path, name)),
  ...['PUT', 'DELETE', 'POST', 'OPTIONS'].map(method =>
    one(NO_ROUTE, method, '/unknown', `${method}: an unknown path`),
  ),
  ...['PUT', 'POST', 'OPTIONS'].map(method => one(NO_ROUTE, method, '/orders/x', `${method}: a malformed id`)),
]

/** The methods of each path. */
const COLLECTION = 'POST, GET, HEAD'
const READING = 'GET, HEAD'
const ACTION = 'POST'
const ALLOWED: Readonly<Record<string, string>> = {
  '/orders': COLLECTION,
  '/orders/<ord>': 'GET, HEAD, PATCH, DELETE',
  '/orders/<ord>:cancel': ACTION,
  '/orders/<ord>/history': READING,
  '/invoices': COLLECTION,
  '/invoices/<inv>': READING,
  '/invoices/<inv>:approve': ACTION,
  '/invoices/<inv>%3Aapprove': ACTION,
  '/invoices/<inv>:void': ACTION,
  '/invoices/<inv>/history': READING,
  '/payments': COLLECTION,
  '/payments/<pay>': READING,
  '/payments/<pay>:settle': ACTION,
  '/payments/<pay>:fail': ACTION,
  '/payments/<pay>:refund': ACTION,
  '/payments/<pay>/history': READING,
  '/idempotency-keys/a-key': READING,
  '/exports': ACTION,
  '/exports/<op>/content': READING,
  '/exports/<op>/manifest': READING,
  '/operations': READING,
  '/operations/<op>': READING,
  '/operations/<op>:cancel': ACTION,
  '/events': READING,
  '/events/manifest': READING,
  '/audit-records': READING,
  '/livez': READING,
  '/readyz': READING,
  '/openapi.json': READING,
  '/problems/rate_limited': READING,
  // The permitted methods follow from the path, so they are the same for resources that do not exist.
  '/orders/ord_00000000000000000000000000': 'GET, HEAD, PATCH, DELETE',
  '/invoices/inv_00000000000000000000000000:approve': ACTION,
}
const METHODS = ['PUT', 'PATCH', 'DELETE', 'POST', 'GET', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'LINK', 'PURGE']

const notAllowed: readonly Case[] = Object.entries(ALLOWED).flatMap(([path, allow]) =>
  METHODS.filter(method => !allow.split(', ').includes(method)).map(method => ({
    name: `${method} ${path}`,
    refusal: [405, 'method_not_allowed'] as const,
    send: async (fixtures: BadInputFixtures) => {
      const answer = await sending(method, path)(fixtures)
      expect(answer.headers.get('allow')?.split(', ')).to.have.members(allow.split(', '))
      return answer
    },
  })),
)

const STATE: Refusal = [409, 'invoice_state_conflict']
/** A percent-encoded colon is a colon: these requests reach the operation, which refuses them for another reason. */
const reached: readonly Case[] = [
  one(
    STATE,
    'POST',
    '/invoices/<approved>%3Aapprove',
    'POST the approval of an approved invoice with an encoded colon',
  ),
  one(
    STATE,
    'POST',
    '/invoices/<approved>%3aapprove',
    'POST the approval of an approved invoice with a colon encoded in lower case',
  ),
  one(STATE, 'POST', '/invoices/<approved>%3Avoid', 'POST the voiding of a paid invoice with an encoded colon'),
  one([409, 'order_has_invoices'], 'POST', '/orders/<paidOrd>%3Acancel', 'POST a cancellation with an encoded colon'),
  one([409, 'payment_state_conflict'], 'POST', '/payments/<pay>%3Asettle', 'POST a settlement with an encoded colon'),
]

refusesAll({ set: 'ids and paths', tenant: TENANT, least: 400 }, [...unknown, ...notAllowed, ...reached], prepare)

const encodedWhole = (text: string): string =>
  Buffer.from(text)
    .toString('hex')
    .replaceAll(/../g, byte => `%${byte.toUpperCase()}`)

type Accepted = readonly [name: string, status: number, method: string, path: string]
const ACCEPTED: readonly Accepted[] = [
  ['HEAD of an order', 200, 'HEAD', '/orders/<ord>'],
  ['HEAD of a list', 200, 'HEAD', '/orders'],
  ['HEAD of a history', 200, 'HEAD', '/orders/<ord>/history'],
  ['HEAD of the contract', 200, 'HEAD', '/openapi.json'],
  ['HEAD of an unknown order', 404, 'HEAD', '/orders/ord_00000000000000000000000000'],
  ['HEAD of a malformed id', 404, 'HEAD', '/orders/x'],
  ['HEAD of an unknown path', 404, 'HEAD', '/unknown'],
  ['HEAD of an action', 405, 'HEAD', '/orders/<ord>:cancel'],
  ['HEAD of a collection without a list', 405, 'HEAD', '/exports'],
  ['an empty query', 200, 'GET', '/orders?'],
  ['a query of ampersands', 200, 'GET', '/orders?&&'],
  ['an encoded digit in the query', 200, 'GET', '/orders?limit=%31'],
  ['an encoded name in the query', 200, 'GET', '/orders?%6cimit=1'],
  ['a colon in the query', 200, 'GET', '/orders?created_after=2026-01-01T00:00:00Z'],
  ['an encoded colon in the query', 200, 'GET', '/orders?created_after=2026-01-01T00%3A00%3A00Z'],
  ['slashes and question marks in the query', 200, 'GET', '/payments?reference=/../?a'],
  ['a payment by the id of its operation', 200, 'GET', '/operations/op_<pay.>'],
  ['an order by an id that begins with an encoded letter (RFC 3986 §6.2.2.2)', 200, 'GET', '/orders/%6Frd_<ord.>'],
  ['an order by an id with an encoded underscore', 200, 'GET', '/orders/ord%5f<ord.>'],
]

acceptsAll(
  { set: 'ids and paths', tenant: TENANT },
  [
    ...ACCEPTED.map(([name, status, method, path]) => ({ name, status, send: sending(method, path) })),
    {
      name: 'an order by an id with every character encoded',
      status: 200,
      send: (fixtures: BadInputFixtures) => sending('GET', `/orders/${encodedWhole(ids['ord'] ?? '')}`)(fixtures),
    },
    {
      name: 'a whole URL as the target (RFC 9112 §3.2.2)',
      status: 200,
      send: async ({ service: { api } }: BadInputFixtures) => {
        const lines = [`Host: ${new URL(api).host}`, `Authorization: Bearer ${token}`]
        const bytes = [`GET ${api}/orders/${ids['ord']} HTTP/1.1`, ...lines, '', ''].join('\r\n')
        const [answer] = (await exchange(api, bytes, { answers: 1 })).answers
        if (answer === undefined) throw new Error('No answer.')
        return answer
      },
    },
    {
      name: 'an approval with an encoded colon, and then a voiding with one in lower case',
      status: 200,
      send: async (fixtures: BadInputFixtures) => {
        const approved = await sending('POST', '/invoices/<inv>%3Aapprove')(fixtures)
        expect(approved.body).to.include({ state: 'approved', id: ids['inv'] })
        const voided = await sending('POST', '/invoices/<inv>%3avoid')(fixtures)
        expect(voided.body).to.include({ state: 'voided', id: ids['inv'] })
        return voided
      },
    },
    {
      name: 'a cancellation with an encoded colon and an empty query',
      status: 200,
      send: async (fixtures: BadInputFixtures) => {
        const cancelled = await sending('POST', '/orders/<ord>%3Acancel?')(fixtures)
        expect(cancelled.body).to.include({ state: 'cancelled', id: ids['ord'] })
        return cancelled
      },
    },
  ],
  prepare,
)
