import { LRUCache } from 'lru-cache'
import type { TenantCommand, TenantState } from '../../streams/tenant/index.ts'
import { Unavailable } from '../ports.ts'
import { createRevalidated, type Revalidated, type RevalidationTimes } from '../lib/staleWhileRevalidate.ts'
import { tenantEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './commandHandler.ts'
import { derivedId } from '../lib/identifiers.ts'

/** Suspensions and revoked scopes are set by operators, independent of any token's claims. */

const tenantIdOf = (tenant: string) => derivedId('ten', tenant)

/** Records an operator's decision. Repeating it changes nothing. */
export const changeTenantStatus = async (
  ledger: Ledger,
  command: TenantCommand,
  context: Context,
): Promise<TenantState> => {
  const changed = await handle(ledger, tenantEntity, tenantIdOf(context.tenant), { command, context })
  if (!changed.ok) throw new Error('The status of this tenant changes all the time; try again.')
  return changed.state
}

export const STATUS_AGE_MAX_MS = 4_000
const TIMES: RevalidationTimes = {
  refreshAfterMs: 1_000,
  maxAgeMs: STATUS_AGE_MAX_MS,
  outageMaxMs: 0,
  retryAfterMs: 0,
}
const TENANTS_MAX = 10_000

export type TenantStatuses = (tenant: string) => Promise<TenantState> | TenantState

/**
 * At most STATUS_AGE_MAX_MS old. While the store does not answer, the last status counts; without one it throws
 * Unavailable.
 */
export const createTenantStatuses = (
  { aggregates, world }: Ledger,
  monotonicNow = () => world.monotonicMs(),
): TenantStatuses => {
  const statuses = new LRUCache<string, Revalidated<TenantState>>({ max: TENANTS_MAX })

  const statusOf = (tenant: string): Revalidated<TenantState> => {
    const status: Revalidated<TenantState> = createRevalidated({
      ...TIMES,
      monotonicNow,
      read: async () => (await aggregates.load(tenantEntity, tenantIdOf(tenant))).state,
      onFailure: error => {
        if (!(error instanceof Unavailable) || status.value() === undefined) throw error
      },
    })
    statuses.set(tenant, status)
    return status
  }

  return tenant => {
    const status = statuses.get(tenant) ?? statusOf(tenant)
    const reading = status.ready()
    return reading ? reading.then(() => stateOf(status)) : stateOf(status)
  }
}

const stateOf = (status: Revalidated<TenantState>): TenantState => {
  const state = status.value()
  if (state === undefined) throw new Error('The status of a tenant was used before it was read.')
  return state
}
