import { anOrder, approvedInvoice, aPayment, type Answer, newKey, pay } from '../../../support/client.ts'
import { send } from '../../../support/rawHttp.ts'
import { type BadInputFixtures, type Case, refusesAll, type Refusal } from './cases.ts'

/**
 * Requests with several faults: the response names the one that the contract checks first. Framing, route, 401,
 * 429, 403 and 404, 413 and 415, 400, the key's replay, 428 and 412, 409.
 */

const TENANT = 'bad-input-order-of-checks'
const MISSING = '00000000000000000000000000'
const BODY_MAX_BYTES = 64 * 1024

type Resources = {
  readonly all: string
  readonly readsOnly: string
  readonly order: string
  readonly invoice: string
  readonly usedKey: string
}
let resources: Resources

type Line = readonly [name: string, value: string]
type Caller = 'all' | 'readsOnly' | 'none'
type Sent = {
  readonly caller?: Caller
  readonly to?: string
  readonly method?: string
  readonly lines?: readonly Line[]
  readonly body?: string
}

const JSON_TYPE: Line = ['Content-Type', 'application/json']
const TEXT: Line = ['Content-Type', 'text/plain']
const OLD: Line = ['API-Version', '1999-01-01']
const NO_ETAG: Line = ['If-Match', 'nonsense']
const STALE: Line = ['If-Match', '"stale"']
const BAD_KEY: Line = ['Idempotency-Key', 'a b']
const HUGE = ' '.repeat(BODY_MAX_BYTES + 1)
const ORDER = JSON.stringify(anOrder())

const sending =
  ({ caller = 'all', to = '/orders', method = 'POST', lines = [JSON_TYPE], body }: Sent) =>
  ({ service }: BadInputFixtures): Promise<Answer> => {
    const filled = (text: string): string =>
      text
        .replaceAll('<order>', resources.order)
        .replaceAll('<invoice>', resources.invoice)
        .replaceAll('<used>', resources.usedKey)
        .replaceAll('<new>', newKey())
    return send(service.api, {
      method,
      path: filled(to),
      headers: [
        ...(caller === 'none' ? [] : [['Authorization', `Bearer ${resources[caller]}`] as const]),
        ...lines.map(([name, value]) => [name, filled(value)] as const),
      ],
      ...(body === undefined ? {} : { body: filled(body) }),
    })
  }

const rows = (refusal: Refusal, all: Readonly<Record<string, Sent>>): Case[] =>
  Object.entries(all).map(([name, sent]) => ({ name, refusal, send: sending(sent) }))

const PAYMENT = '{"invoice_id":"<invoice>","amount":100,"currency":"USD"}'
const missingPayment = PAYMENT.replace('<invoice>', `inv_${MISSING}`)
const paying = (key: string, lines: readonly Line[] = [JSON_TYPE]): Pick<Sent, 'to' | 'lines'> => ({
  to: '/payments',
  lines: [...lines, ['Idempotency-Key', key]],
})
const approving = { to: '/invoices/<invoice>:approve' }
const patching = { to: '/orders/<order>', method: 'PATCH' }

const routes = [
  ...rows([404, 'route_not_found'], {
    'no route, and no credential': { caller: 'none', to: '/unknown', body: '{' },
    'no route, and a body of another type': { to: '/unknown', lines: [TEXT], body: 'x' },
    'no route, and a body that is too large': { to: '/unknown', body: HUGE },
    'no route, and no such version': { to: '/unknown', lines: [JSON_TYPE, OLD], body: ORDER },
  }),
  ...rows([405, 'method_not_allowed'], {
    'no such method, and no credential': { caller: 'none', method: 'PUT', body: '{' },
    'no such method, and no such version': { method: 'PUT', lines: [TEXT, OLD], body: 'x' },
  }),
]

const callers = [
  ...rows([401, 'unauthenticated'], {
    'no credential, and broken JSON': { caller: 'none', body: '{' },
    'no credential, and too large': { caller: 'none', body: HUGE },
    'no credential, and another type': { caller: 'none', lines: [TEXT], body: 'x' },
    'no credential, and no such version': { caller: 'none', lines: [JSON_TYPE, OLD], body: ORDER },
    'no credential, and no such order': { caller: 'none', method: 'GET', to: `/orders/ord_${MISSING}`, lines: [] },
    'no credential, and no key': { caller: 'none', to: '/payments', body: PAYMENT },
    'no credential, and no precondition': { caller: 'none', ...approving, body: '{}' },
  }),
  ...rows([403, 'insufficient_scope'], {
    'no scope, and broken JSON': { caller: 'readsOnly', body: '{' },
    'no scope, and too large': { caller: 'readsOnly', body: HUGE },
    'no scope, and another type': { caller: 'readsOnly', lines: [TEXT], body: 'x' },
    'no scope, and no such version': { caller: 'readsOnly', lines: [JSON_TYPE, OLD], body: ORDER },
    'no scope, and no key': { caller: 'readsOnly', to: '/payments', body: PAYMENT },
    'no scope, and no precondition': { caller: 'readsOnly', ...approving, body: '{}' },
    'no scope, and a stale precondition': { caller: 'readsOnly', ...approving, lines: [JSON_TYPE, STALE], body: '{}' },
    'no scope, and no such invoice': { caller: 'readsOnly', to: `/invoices/inv_${MISSING}:approve`, body: '{}' },
  }),
]

const bodies = [
  ...rows([404, 'resource_not_found'], {
    'a malformed id, and another type': { ...patching, to: '/orders/x', lines: [TEXT], body: 'x' },
    'a malformed id, and no such version': { method: 'GET', to: '/orders/x', lines: [OLD] },
  }),
  ...rows([413, 'payload_too_large'], {
    'too large, and another type': { lines: [TEXT], body: HUGE },
    'too large, and no JSON': { body: HUGE.replace(' ', '{') },
    'too large, and no such version': { lines: [JSON_TYPE, OLD], body: HUGE },
    'too large, and no key': { to: '/payments', body: HUGE },
    'too large, and no precondition': {
      ...patching,
      lines: [['Content-Type', 'application/merge-patch+json']],
      body: HUGE,
    },
  }),
  ...rows([415, 'unsupported_media_type'], {
    'another type, and no JSON': { lines: [TEXT], body: 'x' },
    'another type, and no such version': { lines: [TEXT, OLD], body: ORDER },
    'another type, and an unknown parameter': { to: '/orders?x=1', lines: [TEXT], body: ORDER },
    'another type, and no key': { to: '/payments', lines: [TEXT], body: PAYMENT },
    'another type, and a malformed key': { to: '/payments', lines: [TEXT, BAD_KEY], body: PAYMENT },
    'another type, and no precondition': { ...patching, lines: [TEXT], body: '{}' },
    'another type, and a stale precondition': { ...patching, lines: [JSON_TYPE, STALE], body: '{}' },
    'another type, under a key that was used': { ...paying('<used>', [TEXT]), body: PAYMENT },
  }),
]

const MERGE: Line = ['Content-Type', 'application/merge-patch+json']

const contents = [
  ...rows([400, 'invalid_json'], {
    'no JSON, and no key': { to: '/payments', body: '{' },
    'no JSON, under a key that was used': { ...paying('<used>'), body: '{' },
    'no JSON, and no precondition': { ...patching, lines: [MERGE], body: '{' },
    'no JSON, and a stale precondition': { ...patching, lines: [MERGE, STALE], body: '{' },
  }),
  ...rows([400, 'validation_failed'], {
    'an invalid body, and no key': { to: '/payments', body: '{}' },
    'an invalid body, under a key that was used': { ...paying('<used>'), body: '{}' },
    'an invalid body, and no precondition': { ...patching, lines: [MERGE], body: '{"state":"open"}' },
    'an invalid body, and a stale precondition': { ...patching, lines: [MERGE, STALE], body: '{"state":"open"}' },
    'an invalid body, and more than is due': { ...paying('<new>'), body: PAYMENT.replace('100', '1e12') },
  }),
  ...rows([400, 'unknown_parameter'], {
    'an unknown parameter, and no precondition': { ...patching, to: '/orders/<order>?x=1', lines: [MERGE], body: '{}' },
    'an unknown parameter, and a stale precondition': {
      ...patching,
      to: '/orders/<order>?x=1',
      lines: [MERGE, STALE],
      body: '{}',
    },
  }),
  ...rows([400, 'idempotency_key_missing'], {
    'no key, and more than is due': { to: '/payments', body: PAYMENT.replace('100', '901') },
    'no key, and another currency': { to: '/payments', body: PAYMENT.replace('USD', 'EUR') },
  }),
  ...rows([400, 'idempotency_key_invalid'], {
    'a malformed key, and more than is due': {
      to: '/payments',
      lines: [JSON_TYPE, BAD_KEY],
      body: PAYMENT.replace('100', '901'),
    },
  }),
  ...rows([400, 'precondition_invalid'], {
    'a malformed precondition, and a state that forbids it': {
      ...approving,
      lines: [JSON_TYPE, NO_ETAG],
      body: '{}',
    },
  }),
]

const states = [
  ...rows([404, 'resource_not_found'], {
    'no such invoice, under a new key': { ...paying('<new>'), body: missingPayment },
    'no such order, and a stale precondition': {
      ...patching,
      to: `/orders/ord_${MISSING}`,
      lines: [MERGE, STALE],
      body: '{}',
    },
  }),
  ...rows([422, 'idempotency_key_reused'], {
    'a key that was used, and more than is due': { ...paying('<used>'), body: PAYMENT.replace('100', '901') },
    'a key that was used, and another currency': { ...paying('<used>'), body: PAYMENT.replace('USD', 'EUR') },
  }),
  ...rows([428, 'precondition_required'], {
    'no precondition, and a state that forbids it': { ...approving, body: '{}' },
  }),
  ...rows([412, 'precondition_failed'], {
    'a stale precondition, and a state that forbids it': { ...approving, lines: [JSON_TYPE, STALE], body: '{}' },
  }),
  ...rows([409, 'invoice_state_conflict'], {
    'a state that forbids it': { ...approving, lines: [JSON_TYPE, ['If-Match', '*']], body: '{}' },
  }),
]

const prepare = async ({ client, service }: BadInputFixtures): Promise<void> => {
  const { invoiceId } = await approvedInvoice(client)
  const order = await client.post('/orders', anOrder())
  const usedKey = newKey()
  await pay(client, aPayment(invoiceId), usedKey)
  resources = {
    all: await service.token({ tenant: TENANT }),
    readsOnly: await service.token({ tenant: TENANT, scopes: ['orders:read'] }),
    order: order.body.id,
    invoice: invoiceId,
    usedKey,
  }
}

refusesAll(
  { set: 'the order of the checks', tenant: TENANT, least: 50 },
  [...routes, ...callers, ...bodies, ...contents, ...states],
  prepare,
)
