import type { SubscriptionRow } from '../../../../projections/subscriptions/projection.ts'
import type { SubscriptionId } from '../../../../streams/ids.ts'
import type { DeliveryStart, SubscriptionCommand } from '../../../../streams/subscription/index.ts'
import type { Loaded } from '../../../commands/aggregateRepository.ts'
import { type KindOf, subscriptionEntity } from '../../../commands/entities.ts'
import { handle } from '../../../commands/commandHandler.ts'
import { allowanceBy } from '../../../commands/subscriptions/permission.ts'
import { insufficientScope, Problem, scopesText } from '../../problems/problemCatalogue.ts'
import { executed, visibleState } from '../commonReplies.ts'
import type { AnyLogCall, LogCall } from '../../services.ts'
import type { Start } from './subscriptionSchemas.ts'

/** Checks that the caller itself may read these facts. Throws Problem. */
export const permitTypes = async (
  { principal, tenantStatuses }: AnyLogCall,
  scopes: readonly string[],
): Promise<void> => {
  const lacking = scopes.filter(scope => !principal.scopes.has(scope))
  if (lacking.length > 0) throw insufficientScope(lacking, `These facts require ${scopesText(lacking)}.`)
  const { tenant: tenant_id, subject: created_by } = principal
  const allowance = await allowanceBy(tenantStatuses)({ tenant_id, created_by, scopes })
  if (!allowance.allowed) throw insufficientScope(scopes, 'A scope that these facts require was revoked.')
}

/** Checks that the creator may still read the facts: another caller cannot restore its scopes. Throws Problem. */
export const permitDelivery = async (call: AnyLogCall, row: SubscriptionRow): Promise<void> => {
  await permitTypes(call, row.scopes)
  const allowance = await allowanceBy(call.tenantStatuses)(row)
  if (!allowance.allowed)
    throw new Problem('policy_denied', {
      detail: `The creator of the subscription may no longer read these facts: ${allowance.reason}.`,
    })
}

export const deliveryStartOf = async ({ ledger }: AnyLogCall, start: Start): Promise<DeliveryStart> => {
  if (start === 'beginning') return { from_position: 0n, from_time: null }
  if (start === 'now') return { from_position: (await ledger.store.head()) + 1n, from_time: null }
  if ('position' in start) return { from_position: BigInt(start.position), from_time: null }
  return { from_position: 0n, from_time: new Date(start.time).toISOString() }
}

type ById = LogCall<{ id: SubscriptionId }, unknown, unknown>
type Permit = (row: SubscriptionRow, before: Loaded<KindOf<typeof subscriptionEntity>>) => Promise<void>

/** Executes a command on a subscription of the tenant. Throws Problem if it does not exist or is not permitted. */
export const executeCommand = async (call: ById, command: SubscriptionCommand, permit?: Permit) => {
  const { ledger, context, params } = call
  const before = await visibleState(call, subscriptionEntity, params.id)
  await permit?.(before.row, before)
  const { row, position } = executed(await handle(ledger, subscriptionEntity, params.id, { command, context }))
  return { row, position: position.toString() }
}
