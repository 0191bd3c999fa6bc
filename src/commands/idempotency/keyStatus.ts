import {
  type Id,
  type IdPrefix,
  idSchema,
  type InvoiceId,
  type PaymentId,
  type RefundId,
  withPrefix,
} from '../../../streams/ids.ts'
import type { AnyEvent } from '../../../streams/decider.ts'
import type { Recorded } from '../../../streams/envelope.ts'
import { idempotencyRecordIn } from './conflicts.ts'
import { isExpired } from './retention.ts'
import {
  apiKeyEntity,
  type Entity,
  type Kind,
  invoiceEntity,
  keyBindingEntity,
  operationEntity,
  orderEntity,
  paymentEntity,
  refundEntity,
  subscriptionEntity,
} from '../entities.ts'
import type { Ledger } from '../commandHandler.ts'
import { idOfKey, type ScopedKey } from './record.ts'
import { replayIdOf, subscriptionIdOf } from '../subscriptions/ids.ts'

/** Where each operation stores its idempotency record, and the result under it. */

/** The operations that take a key. A route with a key does not compile unless its operation is listed here. */
export const KEYED_OPERATIONS = [
  'create_payment',
  'refund_payment',
  'create_order',
  'raise_invoice',
  'create_export',
  'issue_api_key',
  'create_subscription',
  'rotate_api_key',
  'replay_subscription',
] as const
export type KeyedOperation = (typeof KEYED_OPERATIONS)[number]

/** The outcome of a key. `href` is where its result is, or will be. */
export type KeyOutcome =
  | { readonly status: 'never_seen' }
  | {
      readonly status: 'in_progress' | 'succeeded' | 'rejected' | 'expired'
      readonly href: string
      readonly expiresAt: string
    }

type KeyUse = { readonly history: readonly Recorded<AnyEvent>[]; readonly href: string; readonly verdict: Verdict }
type Verdict = 'in_progress' | 'succeeded' | 'rejected'

/** Reads only: an unfinished payment is not resumed. */
export const outcomeOfKey = async (ledger: Ledger, operation: KeyedOperation, key: ScopedKey): Promise<KeyOutcome> => {
  const { history, href, verdict } = await find[operation](ledger, key)
  const record = idempotencyRecordIn(history)
  if (record === undefined) return { status: 'never_seen' }
  return { status: isExpired(record, ledger.world) ? 'expired' : verdict, href, expiresAt: record.expires_at }
}

type Find = (ledger: Ledger, key: ScopedKey) => Promise<KeyUse>

/** A creation by one event, whose stream has its id from the key. */
const creationOf =
  <K extends Kind>(entity: Entity<K>, idOf: (key: ScopedKey) => Id<IdPrefix>, path: string): Find =>
  async ({ aggregates }, key) => {
    const id = idOf(key)
    return { history: await beginningOf(aggregates, entity, id), href: `${path}/${id}`, verdict: 'succeeded' }
  }

const find: Readonly<Record<KeyedOperation, Find>> = {
  create_payment: async ({ aggregates }, key) => {
    const id: PaymentId = idOfKey('pay', key)
    const history = await Array.fromAsync(aggregates.events(paymentEntity, id, { limit: 2 }))
    const outcome = history[1]?.event.type
    const verdict = outcome === undefined ? 'in_progress' : outcome === 'PaymentFailed' ? 'rejected' : 'succeeded'
    return { history, href: `/payments/${id}`, verdict }
  },
  refund_payment: async ({ aggregates }, key) => {
    const id: RefundId = idOfKey('rfd', key)
    const history = await beginningOf(aggregates, refundEntity, id)
    const paymentId = history[0]?.event.data.payment_id
    if (paymentId === undefined) return { history, href: '', verdict: 'in_progress' }
    const { state } = await aggregates.load(paymentEntity, paymentId)
    const amount = state.status === 'succeeded' ? state.refunds.get(id) : undefined
    const verdict = amount === undefined ? 'in_progress' : amount === null ? 'rejected' : 'succeeded'
    return { history, href: `/payments/${paymentId}`, verdict }
  },
  create_order: creationOf(orderEntity, key => idOfKey('ord', key), '/orders'),
  raise_invoice: async ({ aggregates }, key) => {
    const id: InvoiceId = idOfKey('inv', key)
    const raised = await beginningOf(aggregates, invoiceEntity, id)
    if (raised.length > 0) return { history: raised, href: `/invoices/${id}`, verdict: 'succeeded' }
    const history = await beginningOf(aggregates, keyBindingEntity, withPrefix('bnd', id))
    const order = idSchema('ord').safeParse(history[0]?.event.data.claim.request['order_id']).data
    const { state } = order === undefined ? { state: undefined } : await aggregates.load(orderEntity, order)
    if (state !== undefined && state.status !== 'none' && state.refused.has(id))
      return { history, href: `/orders/${order}`, verdict: 'rejected' }
    return { history, href: `/invoices/${id}`, verdict: 'in_progress' }
  },
  create_export: creationOf(operationEntity, key => idOfKey('op', key), '/operations'),
  issue_api_key: creationOf(apiKeyEntity, key => idOfKey('key', key), '/api-keys'),
  create_subscription: creationOf(subscriptionEntity, subscriptionIdOf, '/subscriptions'),
  rotate_api_key: async ({ aggregates }, key) => {
    const { history, record } = await keyStreamOf(aggregates, key)
    const id = idSchema('key').safeParse(record?.request['id']).data
    const state = id === undefined ? undefined : (await aggregates.load(apiKeyEntity, id)).state
    const isDone =
      record !== undefined && state !== undefined && state.status !== 'none' && state.rotations.has(record.key_hash)
    return { history, href: `/api-keys/${id}`, verdict: isDone ? 'succeeded' : 'in_progress' }
  },
  replay_subscription: async ({ aggregates }, key) => {
    const { history, record } = await keyStreamOf(aggregates, key)
    const id = idSchema('sub').safeParse(record?.request['id']).data
    if (id === undefined) return { history, href: '/subscriptions', verdict: 'in_progress' }
    for await (const { event } of aggregates.events(subscriptionEntity, id))
      if (event.type === 'SubscriptionReplayed' && event.data.claim?.key_hash === record?.key_hash)
        return { history, href: `/operations/${replayIdOf(id, event.data.replay)}`, verdict: 'succeeded' }
    return { history, href: `/subscriptions/${id}`, verdict: 'in_progress' }
  },
}

/** The first event, which has the idempotency record; none if the stream does not exist. */
const beginningOf = async <K extends Kind>(
  aggregates: Ledger['aggregates'],
  entity: Entity<K>,
  id: Id<IdPrefix>,
): Promise<readonly Recorded<K['event']>[]> => Array.fromAsync(aggregates.events(entity, id, { limit: 1 }))

/** The stream of the key of a command on an existing resource. */
const keyStreamOf = async (aggregates: Ledger['aggregates'], key: ScopedKey) => {
  const history = await beginningOf(aggregates, keyBindingEntity, idOfKey('bnd', key))
  return { history, record: history[0]?.event.data.claim }
}
