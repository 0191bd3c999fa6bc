import { projections, journals } from '../../projections/index.ts'
import { type TenantState, tenant as tenantAggregate } from '../../streams/tenant/index.ts'
import { derivedId } from '../../src/lib/identifiers.ts'
import { recordedOf } from '../../src/lib/storedEvents.ts'
import type { Database, EventStore } from '../../src/ports.ts'
import { relationExists } from '../../src/schema/existingRelations.ts'

export type TenantStatus = {
  readonly tenant: string
  /** The stream of the decisions of operators. */
  readonly stream: string
  readonly state: TenantState
  /** The newest decision of an operator; absent where there is none. */
  readonly last?: { readonly at: string; readonly by: string; readonly reason: string }
}

const statusWithoutDecision = (tenant: string): TenantStatus => ({
  tenant,
  stream: derivedId('ten', tenant),
  state: tenantAggregate.decider.initial,
})

/** The status of each tenant that operators have decided about. */
export const decidedStatuses = async (store: EventStore): Promise<ReadonlyMap<string, TenantStatus>> => {
  const statuses = new Map<string, TenantStatus>()
  const enough = new AbortController()
  const { category, codec, decider } = tenantAggregate
  try {
    for await (const item of store.subscribe({ after: 'start', categories: [category], signal: enough.signal })) {
      if (item.kind === 'interrupted') throw item.error
      if (item.kind === 'caught_up') break
      if (item.kind !== 'event') continue
      const { event, metadata } = recordedOf(codec, item.event)
      const { tenant, at, subject: by } = metadata
      const status = statuses.get(tenant) ?? statusWithoutDecision(tenant)
      const last = { at, by, reason: event.data.reason }
      statuses.set(tenant, { ...status, state: decider.evolve(status.state, event), last })
    }
  } finally {
    enough.abort()
  }
  return statuses
}

/** Every tenant with data is in one of these: an invoice has an order, and other changes have an audit record. */
const TABLES = [projections.orders.name, projections.apiKeys.name, journals.audit.name]

/** Follows the index from one tenant to the next: the tables may have millions of rows of few tenants. */
const tenantsIn = (table: string): string => `
  with recursive found as (
    (select tenant_id from ${table} order by tenant_id limit 1)
    union all
    select (select tenant_id from ${table} where tenant_id > found.tenant_id order by tenant_id limit 1)
      from found where found.tenant_id is not null)
  select tenant_id from found where tenant_id is not null`

const existingTables = async ({ sql }: Database): Promise<readonly string[]> => {
  const existing: string[] = []
  for (const table of TABLES) if (await relationExists(sql, table)) existing.push(table)
  return existing
}

export const allStatuses = async (store: EventStore, database: Database): Promise<readonly TenantStatus[]> => {
  const statuses = new Map(await decidedStatuses(store))
  for (const table of await existingTables(database))
    for (const { tenant_id: tenant } of await database.sql<{ tenant_id: string }>(tenantsIn(table)))
      if (!statuses.has(tenant)) statuses.set(tenant, statusWithoutDecision(tenant))
  return [...statuses.values()].toSorted((a, b) => (a.tenant < b.tenant ? -1 : 1))
}

export const hasData = async (database: Database, tenant: string): Promise<boolean> => {
  for (const table of await existingTables(database)) {
    const [row] = await database.sql(`select from ${table} where tenant_id = $1 limit 1`, [tenant])
    if (row !== undefined) return true
  }
  return false
}
