import type { EventStore } from '../../../src/ports.ts'
import { decidedStatuses, type TenantStatus } from '../tenantStatuses.ts'
import { type Check, ok } from './finding.ts'

/** The check that shows suspended tenants: their refusals are no fault of the service. */

const CHECK = 'tenants'

const described = ({ tenant, last }: TenantStatus): string =>
  last === undefined ? tenant : `${tenant} since ${last.at}, by ${last.by} (${last.reason})`

export const checkTenants = async (store: EventStore): Promise<Check> => {
  const suspended = (await decidedStatuses(store)).values().filter(({ state }) => state.isSuspended)
  const named = [...suspended].map(described)
  return ok(CHECK, named.length === 0 ? 'none suspended' : `suspended: ${named.join('; ')}`)
}
