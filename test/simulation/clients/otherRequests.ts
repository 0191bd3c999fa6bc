import { type Action, keyOf, sendWithCopies } from './actor.ts'

/** Actions on exports, subscriptions and API keys, and reads of resources, histories and manifests. */

const READABLE = ['order', 'invoice', 'payment'] as const
export const readResource: Action = async ({ client, resources, caller }) => {
  const kind = client.random.pick(READABLE)
  const existing = resources.pick(kind, caller.tenant, client.random)
  if (existing === undefined) return
  resources.learn(
    kind,
    caller.tenant,
    await client.sendWithRetries({ operation: `read_${kind}`, caller, id: existing.id }),
  )
}

export const listResources: Action = async ({ client, resources, caller }) => {
  const kind = client.random.pick(READABLE)
  const existing = resources.pick(kind, caller.tenant, client.random, ({ position }) => position !== undefined)
  const headers =
    existing?.position !== undefined && client.random.chance(0.5)
      ? { 'if-min-position': existing.position, prefer: 'wait=2' }
      : {}
  await client.sendWithRetries({ operation: `list_${kind}s`, caller, query: { limit: '100' }, headers })
}

export const readIdempotencyKey: Action = async ({ client, caller }) => {
  const key = `payment-${client.random.integer(0, client.action)}`
  await client.sendWithRetries({
    operation: 'read_idempotency_key',
    caller,
    id: key,
    query: { operation: 'create_payment' },
  })
}

export const createExport: Action = async actor => {
  const { client, caller } = actor
  const resource = client.random.pick(['orders', 'invoices', 'payments'])
  const headers = { 'idempotency-key': keyOf(actor, 'export') }
  const body = { resource, format: client.random.pick(['csv', 'jsonl']) }
  await sendWithCopies(actor, { operation: 'create_export', caller, headers, body }, 'operation')
}

export const endExport: Action = async actor => {
  const { client, resources, caller } = actor
  const operation = client.random.pick(['cancel_operation', 'delete_export', 'delete_export'])
  const existing = resources.pick('operation', caller.tenant, client.random)
  if (existing) await sendWithCopies(actor, { operation, caller, id: existing.id })
}

const FACT_TYPES = ['order.created', 'invoice.approved', 'invoice.paid', 'payment.succeeded', 'payment.failed']

export const createSubscription: Action = async actor => {
  const { client, caller } = actor
  const types = FACT_TYPES.filter(() => client.random.chance(0.6))
  const headers = { 'idempotency-key': keyOf(actor, 'subscription') }
  const start = client.random.pick(['beginning', 'now'])
  const body = { types: types.length === 0 ? FACT_TYPES : types, start }
  const request = { operation: 'create_subscription', caller, headers, body }
  await sendWithCopies(actor, request, 'subscription')
}

export const changeSubscription: Action = async actor => {
  const { client, resources, caller } = actor
  const existing = resources.pick('subscription', caller.tenant, client.random)
  if (existing === undefined) return createSubscription(actor)
  const command = client.random.pick(['pause', 'resume', 'replay', 'resume', 'delete'])
  const body = command === 'replay' ? { from: 'beginning' } : undefined
  await client.sendWithRetries({ operation: `${command}_subscription`, caller, id: existing.id, body })
}

export const issueApiKey: Action = async actor => {
  const { client, caller } = actor
  const headers = { 'idempotency-key': keyOf(actor, 'api-key') }
  const body = { name: 'drawn', scopes: ['orders:read'] }
  const answer = await sendWithCopies(actor, { operation: 'issue_api_key', caller, headers, body })
  const id = answer?.body?.['id']
  if (answer?.status !== 201 || typeof id !== 'string') return
  if (client.random.chance(0.5))
    await sendWithCopies(actor, { operation: 'rotate_api_key', caller, id, headers, body: {} })
  if (client.random.chance(0.3)) await client.sendWithRetries({ operation: 'revoke_api_key', caller, id })
}

const HISTORIES = ['order', 'invoice', 'payment'] as const
export const readAuditRecords: Action = async ({ client, resources, caller }) => {
  const kind = client.random.pick(HISTORIES)
  const existing = resources.pick(kind, caller.tenant, client.random)
  if (existing) await client.sendWithRetries({ operation: `read_${kind}_history`, caller, id: existing.id })
  await client.sendWithRetries({ operation: 'list_audit_records', caller, query: { limit: '100' } })
}

export const readManifest: Action = async ({ client, caller }) => {
  const topic = client.random.pick(['ledger.invoice.v1', 'ledger.payment.v1', 'ledger.order.v1'])
  await client.sendWithRetries({ operation: 'read_events_manifest', caller, query: { topic } })
}
