import { NEWEST_VERSION } from '../../src/http/index.ts'
import { anOrder, approvedInvoice, type Client, newKey } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'

/** A successful request of each operation, on new resources, and requests that each operation refuses. */

export type Example = {
  readonly path: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}
export type Make = (client: Client) => Promise<Example>

/** A request for a rebuild waits for a poll, and then for those before it. */
const REBUILT_MAX_MS = 240_000

const match = (etag: string | null) => ({ 'If-Match': etag ?? '' })
const key = () => ({ 'Idempotency-Key': newKey() })

const order = async (client: Client, given: object = {}) => {
  const answer = await client.post('/orders', { ...anOrder(), ...given })
  return { id: String(answer.body.id), etag: answer.headers.get('etag') }
}
const invoice = async (client: Client, given: object = {}) => {
  const { id } = await order(client, given)
  const answer = await client.post('/invoices', { order_id: id })
  return { id: String(answer.body.id), orderId: id, etag: answer.headers.get('etag') }
}
const payment = async (client: Client, given: object = {}) => {
  const { invoiceId } = await approvedInvoice(client)
  const body = { invoice_id: invoiceId, amount: 900, currency: 'USD', ...given }
  const answer = await client.post('/payments', body, { 'idempotency-key': newKey() })
  if (answer.status !== 201) throw new Error(answer.text)
  return { id: String(answer.body.id), invoiceId, body }
}
const cancelledOrder = async (client: Client) => {
  const { id, etag } = await order(client)
  const cancelled = await client.post(`/orders/${id}:cancel`, {}, { 'if-match': etag ?? '' })
  return { id, etag: cancelled.headers.get('etag') }
}
const invoicedOrder = async (client: Client) => {
  const { orderId } = await invoice(client)
  return { id: orderId, etag: (await client.get(`/orders/${orderId}`)).headers.get('etag') }
}
const exported = async (client: Client) => {
  const answer = await client.post('/exports', { resource: 'orders', format: 'csv' })
  const path = answer.headers.get('location') ?? ''
  await eventually(async () => (await client.get(path)).body.state === 'succeeded')
  return String(answer.body.id)
}

const anApiKey = () => ({ name: 'nightly', scopes: ['orders:read'] })
const issued = async (client: Client) => String((await client.post('/api-keys', anApiKey())).body.id)

const aSubscription = () => ({ types: ['invoice.paid', 'order.created'], start: 'beginning' })
const subscribed = async (client: Client) =>
  `/subscriptions/${(await client.post('/subscriptions', aSubscription())).body.id}`

/** The newest entry of the caller's books, which have the approval of an invoice. */
const booked = async (client: Client) => {
  await approvedInvoice(client)
  const entries = async () => (await client.get('/journal-entries?limit=1')).body.items as { id: string }[] | undefined
  await eventually(async () => ((await entries()) ?? []).length > 0)
  return (await entries())?.[0]?.id ?? ''
}

/** The path of a read model of which no rebuild is under way: a cancelled one has ended. */
const restingProjection = async (client: Client) => {
  await client.post('/projections/orders:cancel', {})
  return '/projections/orders'
}

let rebuilt: Promise<void> | undefined
/** A roll-back needs a rebuild, one for all examples. */
const rebuildOnce = async (client: Client): Promise<void> => {
  await client.post(`${await restingProjection(client)}:rebuild`, {})
  await eventually(async () => {
    const { items } = (await client.get('/projections')).body
    return items.some((of: { previous_position: string | null }) => of.previous_position !== null)
  }, REBUILT_MAX_MS)
}
const rebuiltProjection = async (client: Client) => {
  await (rebuilt ??= rebuildOnce(client))
  return restingProjection(client)
}

/** The proof of an event, which is there some seconds after the event. */
const sealedProof = async (client: Client) => {
  const { id } = await order(client)
  const path = `/audit/proof/${(await client.get(`/orders/${id}/history`)).body.items[0].event_id}`
  await eventually(async () => (await client.get(path)).status === 200)
  return path
}

/** By operation id. */
export const examples: Readonly<Record<string, Make>> = {
  list_accounts: async () => ({ path: '/accounts' }),
  read_account: async client => {
    await booked(client)
    return { path: '/accounts/revenue.USD' }
  },
  list_account_entries: async client => {
    await booked(client)
    return { path: '/accounts/revenue.USD/entries' }
  },
  read_trial_balance: async () => ({ path: '/trial-balance' }),
  list_journal_entries: async () => ({ path: '/journal-entries' }),
  read_journal_entry: async client => ({ path: `/journal-entries/${await booked(client)}` }),
  list_periods: async () => ({ path: '/periods' }),
  list_audit_records: async () => ({ path: '/audit-records' }),
  read_installation: async () => ({ path: '/installation' }),
  list_installation_audit_records: async () => ({ path: '/installation/audit-records' }),
  list_projections: async () => ({ path: '/projections' }),
  rebuild_projection: async client => ({ path: `${await restingProjection(client)}:rebuild`, body: {} }),
  verify_projection: async () => ({ path: '/projections/orders:verify', body: {} }),
  roll_back_projection: async client => ({ path: `${await rebuiltProjection(client)}:rollback`, body: {} }),
  cancel_projection_rebuild: async client => {
    await client.post('/projections/orders:verify', {})
    return { path: '/projections/orders:cancel', body: {} }
  },
  list_audit_heads: async () => ({ path: '/audit/heads' }),
  read_audit_proof: async client => ({ path: await sealedProof(client) }),
  create_order: async () => ({ path: '/orders', body: anOrder(), headers: key() }),
  list_orders: async () => ({ path: '/orders' }),
  read_order: async client => ({ path: `/orders/${(await order(client)).id}` }),
  change_order: async client => {
    const { id, etag } = await order(client)
    return { path: `/orders/${id}`, body: { description: 'x' }, headers: match(etag) }
  },
  cancel_order: async client => {
    const { id, etag } = await order(client)
    return { path: `/orders/${id}:cancel`, body: {}, headers: match(etag) }
  },
  delete_order: async client => {
    const { id, etag } = await order(client)
    return { path: `/orders/${id}`, headers: match(etag) }
  },
  raise_invoice: async client => ({
    path: '/invoices',
    body: { order_id: (await order(client)).id },
    headers: key(),
  }),
  list_invoices: async () => ({ path: '/invoices' }),
  read_invoice: async client => ({ path: `/invoices/${(await invoice(client)).id}` }),
  approve_invoice: async client => {
    const { id, etag } = await invoice(client)
    return { path: `/invoices/${id}:approve`, body: {}, headers: match(etag) }
  },
  void_invoice: async client => {
    const { id, etag } = await invoice(client)
    return { path: `/invoices/${id}:void`, body: { reason: 'x' }, headers: match(etag) }
  },
  create_payment: async client => {
    const { invoiceId } = await approvedInvoice(client)
    return { path: '/payments', body: { invoice_id: invoiceId, amount: 900, currency: 'USD' }, headers: key() }
  },
  list_payments: async () => ({ path: '/payments' }),
  read_payment: async client => ({ path: `/payments/${(await payment(client)).id}` }),
  settle_payment: async client => ({
    path: `/payments/${(await payment(client, { settlement: 'deferred' })).id}:settle`,
    body: {},
  }),
  fail_payment: async client => ({
    path: `/payments/${(await payment(client, { settlement: 'deferred' })).id}:fail`,
    body: {},
  }),
  refund_payment: async client => ({
    path: `/payments/${(await payment(client)).id}:refund`,
    body: { amount: 1, reason: 'x' },
    headers: key(),
  }),
  read_order_history: async client => ({ path: `/orders/${(await cancelledOrder(client)).id}/history` }),
  read_invoice_history: async client => ({ path: `/invoices/${(await approvedInvoice(client)).invoiceId}/history` }),
  read_payment_history: async client => ({ path: `/payments/${(await payment(client)).id}/history` }),
  create_export: async () => ({ path: '/exports', body: { resource: 'orders', format: 'csv' }, headers: key() }),
  read_export_manifest: async client => ({ path: `/exports/${await exported(client)}/manifest` }),
  read_export: async client => ({ path: `/exports/${await exported(client)}/content` }),
  delete_export: async client => ({ path: `/exports/${await exported(client)}` }),
  list_operations: async () => ({ path: '/operations' }),
  read_operation: async client => ({ path: `/operations/${await exported(client)}` }),
  cancel_operation: async client => {
    const { body } = await client.post('/exports', { resource: 'payments', format: 'csv' })
    return { path: `/operations/${body.id}:cancel`, body: {} }
  },
  read_idempotency_key: async () => ({ path: `/idempotency-keys/${newKey()}` }),
  issue_api_key: async () => ({ path: '/api-keys', body: anApiKey(), headers: key() }),
  list_api_keys: async () => ({ path: '/api-keys' }),
  read_api_key: async client => ({ path: `/api-keys/${await issued(client)}` }),
  rotate_api_key: async client => ({ path: `/api-keys/${await issued(client)}:rotate`, body: {}, headers: key() }),
  revoke_api_key: async client => ({ path: `/api-keys/${await issued(client)}` }),
  create_subscription: async () => ({ path: '/subscriptions', body: aSubscription(), headers: key() }),
  list_subscriptions: async client => {
    await subscribed(client)
    await subscribed(client)
    await eventually(async () => (await client.get('/subscriptions?limit=1')).body.page.has_more)
    return { path: '/subscriptions' }
  },
  read_subscription: async client => ({ path: await subscribed(client) }),
  delete_subscription: async client => ({ path: await subscribed(client) }),
  pause_subscription: async client => ({ path: `${await subscribed(client)}:pause`, body: {} }),
  resume_subscription: async client => {
    const path = await subscribed(client)
    await client.post(`${path}:pause`, {})
    return { path: `${path}:resume`, body: {} }
  },
  replay_dead_letters: async client => ({
    path: `${await subscribed(client)}/dead-letters:replay`,
    body: { subject: 'ord_01JB3N8Q6Z4T1V7W9XAC2E5GHK', reason: 'The topic exists again.' },
  }),
  discard_dead_letters: async client => ({
    path: `${await subscribed(client)}/dead-letters:discard`,
    body: { subject: 'ord_01JB3N8Q6Z4T1V7W9XAC2E5GHK', reason: 'Nobody needs it.' },
  }),
  replay_subscription: async client => ({
    path: `${await subscribed(client)}:replay`,
    body: { from: 'beginning' },
    headers: key(),
  }),
  list_dead_letters: async client => ({ path: `${await subscribed(client)}/dead-letters` }),
  list_events: async () => ({ path: '/events' }),
  read_events_manifest: async () => ({ path: '/events/manifest' }),
  live: async () => ({ path: '/livez' }),
  ready: async () => ({ path: '/readyz' }),
  read_issuer: async () => ({ path: '/.well-known/oauth-authorization-server' }),
  read_issuer_by_path: async () => ({ path: '/.well-known/oauth-authorization-server/oauth' }),
  read_issuer_below_path: async () => ({ path: '/oauth/.well-known/oauth-authorization-server' }),
  read_issuer_as_openid: async () => ({ path: '/oauth/.well-known/openid-configuration' }),
  read_issuer_as_openid_by_path: async () => ({ path: '/.well-known/openid-configuration/oauth' }),
  read_protected_resource: async () => ({ path: '/.well-known/oauth-protected-resource' }),
  read_problem: async () => ({ path: '/problems/internal_error' }),
  read_root: async () => ({ path: '/' }),
  read_docs: async () => ({ path: '/docs' }),
  read_docs_login: async () => ({ path: '/docs/oauth2-redirect.html' }),
  read_docs_file: async () => ({ path: '/docs/docs.js' }),
  read_version: async () => ({ path: `/docs/versions/${NEWEST_VERSION}` }),
  list_schemas: async () => ({ path: '/schemas' }),
  read_schema: async () => ({ path: '/schemas/invoice.paid.v1.json' }),
  read_asyncapi: async () => ({ path: '/asyncapi.json' }),
  read_contract: async () => ({ path: '/openapi.json' }),
}

const paying = async (client: Client, body: object): Promise<Example> => {
  const { invoiceId } = await approvedInvoice(client)
  const whole = { invoice_id: invoiceId, amount: 900, currency: 'USD', ...body }
  return { path: '/payments', body: whole, headers: key() }
}

/** Requests that the state of a resource refuses, by operation id and code. */
export const refusals: Readonly<Record<string, Readonly<Record<string, Make>>>> = {
  // Of a read model that no test rebuilds over HTTP.
  rebuild_projection: {
    projection_state_conflict: async () => ({
      path: '/projections/audit:rebuild',
      body: { accept_differences: true, reason: 'none' },
    }),
  },
  roll_back_projection: {
    projection_state_conflict: async () => ({ path: '/projections/audit:rollback', body: {} }),
  },
  cancel_projection_rebuild: {
    projection_state_conflict: async () => ({ path: '/projections/audit:cancel', body: {} }),
  },
  change_order: {
    order_state_conflict: async client => {
      const { id, etag } = await cancelledOrder(client)
      return { path: `/orders/${id}`, body: { description: 'x' }, headers: match(etag) }
    },
  },
  cancel_order: {
    order_state_conflict: async client => {
      const { id, etag } = await cancelledOrder(client)
      return { path: `/orders/${id}:cancel`, body: {}, headers: match(etag) }
    },
    order_has_invoices: async client => {
      const { id, etag } = await invoicedOrder(client)
      return { path: `/orders/${id}:cancel`, body: {}, headers: match(etag) }
    },
  },
  delete_order: {
    order_has_invoices: async client => {
      const { id, etag } = await invoicedOrder(client)
      return { path: `/orders/${id}`, headers: match(etag) }
    },
  },
  raise_invoice: {
    resource_not_found: async () => ({ path: '/invoices', body: { order_id: 'ord_00000000000000000000000000' } }),
    order_state_conflict: async client => ({
      path: '/invoices',
      body: { order_id: (await cancelledOrder(client)).id },
    }),
    order_has_invoices: async client => ({ path: '/invoices', body: { order_id: (await invoicedOrder(client)).id } }),
  },
  approve_invoice: {
    invoice_state_conflict: async client => {
      const { invoiceId, etag } = await approvedInvoice(client)
      return { path: `/invoices/${invoiceId}:approve`, body: {}, headers: match(etag) }
    },
    policy_denied: async client => {
      const { id, etag } = await invoice(client, { currency: 'CHF' })
      return { path: `/invoices/${id}:approve`, body: {}, headers: match(etag) }
    },
  },
  void_invoice: {
    invoice_state_conflict: async client => {
      const { invoiceId } = await payment(client)
      const etag = (await client.get(`/invoices/${invoiceId}`)).headers.get('etag')
      return { path: `/invoices/${invoiceId}:void`, body: { reason: 'x' }, headers: match(etag) }
    },
  },
  create_payment: {
    resource_not_found: client => paying(client, { invoice_id: 'inv_00000000000000000000000000' }),
    payment_not_allowed: client => paying(client, { currency: 'EUR' }),
    payment_exceeds_due: client => paying(client, { amount: 901 }),
    payment_reference_conflict: async client => {
      const reference = newKey()
      await payment(client, { reference })
      return paying(client, { reference })
    },
  },
  settle_payment: {
    payment_state_conflict: async client => ({ path: `/payments/${(await payment(client)).id}:settle`, body: {} }),
  },
  fail_payment: {
    payment_state_conflict: async client => ({ path: `/payments/${(await payment(client)).id}:fail`, body: {} }),
  },
  refund_payment: {
    payment_state_conflict: async client => ({
      path: `/payments/${(await payment(client)).id}:refund`,
      body: { amount: 901, reason: 'x' },
      headers: key(),
    }),
  },
}
