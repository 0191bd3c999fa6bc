import type { Answer } from '../../../support/client.ts'
import { anOrder } from '../../../support/client.ts'
import { send } from '../../../support/rawHttp.ts'
import { type BadInputFixtures, type Case, refusesAll, type Refusal, acceptsAll } from './cases.ts'
import { FALSE_IF_MATCH, MATCHING, NOT_MATCHING, type Row, TRUE_IF_MATCH, UNPARSABLE } from './conditionTables.ts'

/** If-Match and If-None-Match (RFC 9110 §13.1). */

const TENANT = 'bad-conditions'
const MISSING = '00000000000000000000000000'
const CANCEL = ':cancel'

type Resources = {
  readonly token: string
  /** The id of an order that was changed once. */
  readonly order: string
  readonly cancelled: string
  readonly draft: string
  readonly approved: string
  readonly etags: Readonly<Record<string, string>>
}
let resources: Resources

const etagOf = ({ headers }: Answer): string => headers.get('etag') ?? ''

const prepare = async ({ client, service }: BadInputFixtures): Promise<void> => {
  const order = await client.post('/orders', anOrder())
  const changed = await client.request('PATCH', `/orders/${order.body.id}`, {
    raw: '{"description":"changed"}',
    headers: { 'if-match': etagOf(order), 'content-type': 'application/merge-patch+json' },
  })
  const other = await client.post('/orders', anOrder())
  const cancelled = await client.post(`/orders/${other.body.id}${CANCEL}`, {}, { 'if-match': '*' })
  const invoiceOf = async (amount: number): Promise<Answer> =>
    client.post('/invoices', { order_id: (await client.post('/orders', anOrder(amount))).body.id })
  const draft = await invoiceOf(300)
  const second = await invoiceOf(400)
  const approved = await client.post(`/invoices/${second.body.id}:approve`, {}, { 'if-match': '*' })
  resources = {
    token: await service.token({ tenant: TENANT }),
    order: `/orders/${order.body.id}`,
    cancelled: `/orders/${other.body.id}`,
    draft: `/invoices/${draft.body.id}`,
    approved: `/invoices/${second.body.id}`,
    etags: {
      current: etagOf(changed),
      stale: etagOf(order),
      cancelled: etagOf(cancelled),
      draft: etagOf(draft),
      approved: etagOf(approved),
    },
  }
}

/** Replaces `<current>` by the entity tag, and `<current.>` by its text between the quotes. */
const filled = (value: string): string =>
  value.replaceAll(/<(\w+)(\.?)>/g, (_, name: string, inner: string) => {
    const etag = resources.etags[name] ?? ''
    return inner ? etag.slice(1, -1) : etag
  })

type Line = readonly [name: string, value: string]
type Sent = { readonly method: string; readonly path: () => string; readonly body?: string; readonly lines: Line[] }

const sending =
  ({ method, path, body, lines }: Sent) =>
  ({ service }: BadInputFixtures): Promise<Answer> =>
    send(service.api, {
      method,
      path: path(),
      headers: [
        ['Authorization', `Bearer ${resources.token}`],
        ...(body === undefined
          ? []
          : [['Content-Type', `application/${method === 'PATCH' ? 'merge-patch+' : ''}json`] as const]),
        ...lines.map(([name, value]) => [name, filled(value)] as const),
      ],
      ...(body === undefined ? {} : { body }),
    })

const linesOf = (header: string, values: Row[1]): Line[] => [values].flat().map(value => [header, value])
const orderPath = (): string => resources.order
const changing = (values: Row[1], body = '{"description":"never"}') =>
  sending({ method: 'PATCH', path: orderPath, body, lines: linesOf('If-Match', values) })
const reading = (values: Row[1], method = 'GET') =>
  sending({ method, path: orderPath, lines: linesOf('If-None-Match', values) })

const INVALID: Refusal = [400, 'precondition_invalid']
const FAILED: Refusal = [412, 'precondition_failed']
const REQUIRED: Refusal = [428, 'precondition_required']
const GONE: Refusal = [404, 'resource_not_found']

type Operation = { readonly method: string; readonly path: () => string; readonly body?: string }
const OPERATIONS: Readonly<Record<string, Operation>> = {
  'a change of an order': { method: 'PATCH', path: orderPath, body: '{}' },
  'the deletion of an order': { method: 'DELETE', path: orderPath },
  'the cancellation of an order': { method: 'POST', path: () => `${resources.order}${CANCEL}`, body: '{}' },
  'the approval of an invoice': { method: 'POST', path: () => `${resources.draft}:approve`, body: '{}' },
  'the voiding of an invoice': { method: 'POST', path: () => `${resources.draft}:void`, body: '{"reason":"none"}' },
}

const onEvery = (refusal: Refusal, what: string, lines: Line[]): Case[] =>
  Object.entries(OPERATIONS).map(([name, operation]) => ({
    name: `${name} ${what}`,
    refusal,
    send: sending({ ...operation, lines }),
  }))

const STAR: Line = ['If-Match', '*']
const one = (name: string, refusal: Refusal, sent: Sent): Case => ({ name, refusal, send: sending(sent) })

/** Requests without a required precondition, and combinations of preconditions that must be refused. */
const COMBINATIONS: readonly Case[] = [
  ...onEvery(REQUIRED, 'without a condition', []),
  ...onEvery(REQUIRED, 'with If-None-Match in place of If-Match', [['If-None-Match', '"x"']]),
  ...onEvery(FAILED, 'with an unknown tag', [['If-Match', '"never"']]),
  ...onEvery(FAILED, 'with If-Match: * and If-None-Match: *', [STAR, ['If-None-Match', '*']]),
  ...onEvery(INVALID, 'with If-Match: * and a malformed If-None-Match', [STAR, ['If-None-Match', 'x']]),
  one('a change with If-Unmodified-Since', REQUIRED, {
    ...{ method: 'PATCH', path: orderPath, body: '{}' },
    lines: [['If-Unmodified-Since', 'Fri, 01 Jan 2100 00:00:00 GMT']],
  }),
  one('a change with the ETag in a header of that name', REQUIRED, {
    ...{ method: 'PATCH', path: orderPath, body: '{}' },
    lines: [['ETag', '<current>']],
  }),
  one('a change whose If-None-Match has the current tag, weak', FAILED, {
    ...{ method: 'PATCH', path: orderPath, body: '{}' },
    lines: [
      ['If-Match', '<current>'],
      ['If-None-Match', '"x", W/<current>'],
    ],
  }),
  one('the approval of an approved invoice, by the tag of its draft', FAILED, {
    ...{ method: 'POST', path: () => `${resources.approved}:approve`, body: '{}' },
    lines: [['If-Match', '<draft>']],
  }),
  one('the approval of an approved invoice, by its current tag', [409, 'invoice_state_conflict'], {
    ...{ method: 'POST', path: () => `${resources.approved}:approve`, body: '{}' },
    lines: [['If-Match', '<approved>']],
  }),
  one('the cancellation of a cancelled order, by its current tag', [409, 'order_state_conflict'], {
    ...{ method: 'POST', path: () => `${resources.cancelled}${CANCEL}`, body: '{}' },
    lines: [['If-Match', '<cancelled>']],
  }),
  one('If-Match: * for an unknown order', GONE, {
    ...{ method: 'PATCH', path: () => `/orders/ord_${MISSING}`, body: '{}' },
    lines: [STAR],
  }),
  one('If-None-Match: * for an unknown order', GONE, {
    ...{ method: 'GET', path: () => `/orders/ord_${MISSING}` },
    lines: [['If-None-Match', '*']],
  }),
  one('a malformed tag for an unknown order', GONE, {
    ...{ method: 'GET', path: () => `/orders/ord_${MISSING}` },
    lines: [['If-None-Match', 'x']],
  }),
  one('a coded body and a stale tag: the coding comes first', [415, 'unsupported_media_type'], {
    ...{ method: 'POST', path: () => `${resources.draft}:approve`, body: '{}' },
    lines: [
      ['Content-Encoding', 'identity'],
      ['If-Match', '<stale>'],
    ],
  }),
  one('a wrong body and a stale tag: the body comes first', [400, 'validation_failed'], {
    ...{ method: 'PATCH', path: orderPath, body: '{"state":"open"}' },
    lines: [['If-Match', '<stale>']],
  }),
]

refusesAll(
  { set: 'conditions', tenant: TENANT, least: 150 },
  [
    ...UNPARSABLE.map(([name, values]) => ({ name: `If-Match: ${name}`, refusal: INVALID, send: changing(values) })),
    ...UNPARSABLE.map(([name, values]) => ({
      name: `If-None-Match: ${name}`,
      refusal: INVALID,
      send: reading(values),
    })),
    ...FALSE_IF_MATCH.map(([name, values]) => ({ name: `If-Match: ${name}`, refusal: FAILED, send: changing(values) })),
    ...COMBINATIONS,
  ],
  prepare,
)

acceptsAll(
  { set: 'conditions', tenant: TENANT },
  [
    ...TRUE_IF_MATCH.map(([name, values]) => ({
      name: `If-Match: ${name}`,
      status: 200,
      send: changing(values, '{}'),
    })),
    ...MATCHING.map(([name, values]) => ({ name: `If-None-Match: ${name}`, status: 304, send: reading(values) })),
    ...NOT_MATCHING.map(([name, values]) => ({ name: `If-None-Match: ${name}`, status: 200, send: reading(values) })),
    { name: 'HEAD, If-None-Match: the current tag', status: 304, send: reading('<current>', 'HEAD') },
    { name: 'HEAD, If-None-Match: the stale tag', status: 200, send: reading('<stale>', 'HEAD') },
    {
      name: 'If-Modified-Since beside a tag that matches: it is ignored',
      status: 304,
      send: sending({
        ...{ method: 'GET', path: orderPath },
        lines: [
          ['If-None-Match', '<current>'],
          ['If-Modified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
        ],
      }),
    },
    {
      name: 'conditions on dates, which the service ignores',
      status: 200,
      send: sending({
        ...{ method: 'GET', path: orderPath },
        lines: [
          ['If-Modified-Since', 'Fri, 01 Jan 2100 00:00:00 GMT'],
          ['If-Unmodified-Since', 'yesterday'],
        ],
      }),
    },
  ],
  prepare,
)
