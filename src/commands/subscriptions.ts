import { CROCKFORD, type OperationId, type SubscriptionId, withPrefix } from '../../streams/ids.ts'
import type { World } from '../ports.ts'
import { idOfKey, randomId, type ScopedKey } from './identifiers.ts'
import type { Ledger } from './handle.ts'
import { createTenantStatuses, type TenantStatuses } from './tenantStatus.ts'

/**
 * What follows from the id of a subscription. The last characters of the id itself are always zero: they are left for the
 * number of a replay, so that the operation of a replay is found in the subscription's stream without any look-up. What
 * is left of the id, 110 bits, is still nobody's to guess.
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

/** The replay that an operation would be, if it is one: only the stream knows whether there was such a replay. */
export const replayOfOperation = (operation: OperationId): { readonly id: SubscriptionId; readonly replay: number } => {
  const digits = operation.slice(-REPLAY_DIGITS)
  const replay = digits.split('').reduce((number, digit) => number * BASE + CROCKFORD.indexOf(digit), 0)
  return { id: withNumber(withPrefix('sub', operation), NO_REPLAY), replay }
}

/** Where a subscription's facts go, and the groups in which its principal reads them. */
export const topicNamesOf = (id: string) => ({
  topic: `ledger.subscription.${id}`,
  deadLetterTopic: `ledger.subscription.${id}.dlq`,
  groupPrefix: `ledger.subscription.${id}`,
})

export type Allowance =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly reason: 'tenant_suspended' | 'scope_revoked' }

/** Whose facts, on whose authority, by which scopes. */
export type Subscribed = {
  readonly tenant_id: string
  readonly created_by: string
  readonly scopes: readonly string[]
}

/** Whether the subscription may still have what it delivers. Throws Unavailable when nothing is known of its tenant. */
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
 * For who asks all the time: a yes may be some seconds old, a no is made sure of. Otherwise a delivery that was resumed the
 * moment its tenant was reinstated would be stopped again by what was known before.
 */
export const watchedAllowance = (ledger: Ledger): IsStillAllowed => {
  const usual = allowanceBy(createTenantStatuses(ledger))
  return async subscribed => {
    const allowance = await usual(subscribed)
    return allowance.allowed ? allowance : allowanceBy(createTenantStatuses(ledger))(subscribed)
  }
}
