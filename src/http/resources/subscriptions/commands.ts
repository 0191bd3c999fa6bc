import type { SubscriptionRow } from '../../../../projections/subscriptions/projection.ts'
import type { SubscriptionId } from '../../../../streams/ids.ts'
import type { DeliveryStart, SubscriptionCommand } from '../../../../streams/subscription/index.ts'
import { subscriptionEntity } from '../../../commands/entities.ts'
import { handle } from '../../../commands/handle.ts'
import { allowanceBy } from '../../../commands/subscriptions.ts'
import { insufficientScope, Problem } from '../../response/problemCatalogue.ts'
import { changedHeaders, problemOf, visible } from '../resource.ts'
import type { Call } from '../../route.ts'
import type { Start } from './schemas.ts'

/** What every command on a subscription begins with: who may, and where from. */

type AnyCall = Call<unknown, unknown, unknown>

/** Nobody is sent what they may not read: neither what they subscribe to, nor what somebody else has subscribed to. */
export const permitTypes = async ({ principal, tenantStatuses }: AnyCall, scopes: readonly string[]): Promise<void> => {
  const lacking = scopes.filter(scope => !principal.scopes.has(scope))
  if (lacking.length > 0) throw insufficientScope(lacking, `These facts need ${lacking.join(', ')}.`)
  const { tenant: tenant_id, subject: created_by } = principal
  const allowance = await allowanceBy(tenantStatuses)({ tenant_id, created_by, scopes })
  if (!allowance.allowed) throw insufficientScope(scopes, 'A scope that these facts need was revoked.')
}

/** What it was created on must still hold: whoever goes on with it cannot give it what its creator has lost. */
export const permitDelivery = async (call: AnyCall, row: SubscriptionRow): Promise<void> => {
  await permitTypes(call, row.scopes)
  const allowance = await allowanceBy(call.tenantStatuses)(row)
  if (!allowance.allowed)
    throw new Problem('policy_denied', { detail: `Its creator may no longer have these facts: ${allowance.reason}.` })
}

/** Where the delivery begins that is asked for. */
export const startOf = async ({ ledger }: AnyCall, start: Start): Promise<DeliveryStart> => {
  if (start === 'beginning') return { from_position: 0n, from_time: null }
  if (start === 'now') return { from_position: (await ledger.store.head()) + 1n, from_time: null }
  if ('position' in start) return { from_position: BigInt(start.position), from_time: null }
  return { from_position: 0n, from_time: new Date(start.time).toISOString() }
}

type ById = Call<{ id: SubscriptionId }, unknown, unknown>
type Permit = (call: AnyCall, row: SubscriptionRow) => Promise<void>

/** Carries the command out on a subscription of the tenant. Throws Problem when it is not there, or not permitted. */
export const executeCommand = async (call: ById, command: SubscriptionCommand, permit?: Permit) => {
  const { ledger, context, params } = call
  const before = visible(call, (await ledger.aggregates.load(subscriptionEntity, params.id)).row)
  await permit?.(call, before)
  const handled = await handle(ledger, subscriptionEntity, params.id, { command, context })
  if ('rejected' in handled) throw problemOf(handled)
  if (!handled.ok || !handled.row) throw new Error('A command on a subscription left no subscription.')
  return { row: handled.row, position: changedHeaders(call, handled)['Ledger-Position'] }
}
