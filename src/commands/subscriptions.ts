import { CROCKFORD, type OperationId, type SubscriptionId, withPrefix } from '../../streams/ids.ts'
import type { World } from '../ports.ts'
import { idOfKey, randomId, type ScopedKey } from './identifiers.ts'
import type { Ledger } from './commandHandler.ts'
import { createTenantStatuses, type TenantStatuses } from './tenantStatus.ts'

/**
 * Ids, topics and permissions of subscriptions. The last characters of a subscription's id are always zero: an
 * operation id puts the number of a replay there, so that it leads to the subscription's stream without a look-up. The
 * rest of the id, 110 bits, cannot be guessed.
 */

const REPLAY_DIGITS = 4
const NO_REPLAY = '0'.repeat(REPLAY_DIGITS)
const BASE = CROCKFORD.length

const withNumber = (id: SubscriptionId, digits: string): SubscriptionId =>
  `sub_${id.slice('sub_'.length, -REPLAY_DIGITS)}${digits}`

export const newSubscriptionId = (world: World): SubscriptionId => withNumber(randomId('sub', world), NO_REPLAY)

export const subscriptionIdOf = (key: ScopedKey): SubscriptionId => withNumber(idOfKey('sub', key), NO_REPLAY)

/** The operation of the replay with this number; the first has number 1. */
export const replayIdOf = (id: SubscriptionId, replay: number): OperationId => {
  let digits = ''
  for (let rest = replay; digits.length < REPLAY_DIGITS; rest = Math.floor(rest / BASE))
    digits = `${CROCKFORD[rest % BASE]}${digits}`
  return withPrefix('op', withNumber(id, digits))
}

/** The replay that an operation id stands for. Only the stream tells whether there was such a replay. */
export const replayOfOperation = (operation: OperationId): { readonly id: SubscriptionId; readonly replay: number } => {
  const digits = operation.slice(-REPLAY_DIGITS)
  const replay = digits.split('').reduce((number, digit) => number * BASE + CROCKFORD.indexOf(digit), 0)
  return { id: withNumber(withPrefix('sub', operation), NO_REPLAY), replay }
}

/** The topics of a subscription, and the consumer groups in which its principal reads them. */
export const topicNamesOf = (id: string) => ({
  topic: `ledger.subscription.${id}`,
  deadLetterTopic: `ledger.subscription.${id}.dlq`,
  groupPrefix: `ledger.subscription.${id}`,
})

export type Allowance =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly reason: 'tenant_suspended' | 'scope_revoked' }

/** The tenant whose facts are delivered, the principal that asked, and its scopes. */
export type Subscribed = {
  readonly tenant_id: string
  readonly created_by: string
  readonly scopes: readonly string[]
}

/** Whether the subscription may still deliver. Throws Unavailable when nothing is known of its tenant. */
export type IsStillAllowed = (subscribed: Subscribed) => Promise<Allowance>

export const allowanceBy =
  (tenantStatuses: TenantStatuses): IsStillAllowed =>
  async ({ tenant_id, created_by, scopes }) => {
    const { isSuspended, revoked } = await tenantStatuses(tenant_id)
    if (isSuspended) return { allowed: false, reason: 'tenant_suspended' }
    const taken = revoked.get(created_by)
    const lacks = taken !== undefined && scopes.some(scope => taken.has(scope))
    return lacks ? { allowed: false, reason: 'scope_revoked' } : { allowed: true }
  }

/**
 * An allowance for frequent checks: a cached yes may be some seconds old, a no is verified. Otherwise a delivery that
 * was resumed right after its tenant was reinstated would be stopped again by the cached status.
 */
export const watchedAllowance = (ledger: Ledger): IsStillAllowed => {
  const usual = allowanceBy(createTenantStatuses(ledger))
  return async subscribed => {
    const allowance = await usual(subscribed)
    return allowance.allowed ? allowance : allowanceBy(createTenantStatuses(ledger))(subscribed)
  }
}
