import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { ATTACKING_TENANT, type Target } from './attack.ts'

const BATCH = 10_000

/** Adds rows of orders that have no events to the attacking tenant's read model. */
export const insertOrders = async ({ databaseUrl }: Target, count: number): Promise<void> => {
  const database = openDatabase({ connectionString: databaseUrl, statementTimeoutMs: 60_000 })
  try {
    for (let from = 1; from <= count; from += BATCH)
      await database.sql(`insert into orders_v1 (id, tenant_id, revision, created_at, updated_at, created_by, state, currency,
          lines, total_amount, metadata)
        select 'attack-' || n, '${ATTACKING_TENANT}', 1, now() - n * interval '1 second', now(), 'attack', 'open', 'USD', '[]', 1, '{}'
          from generate_series(${from}, ${from + BATCH - 1}) n on conflict do nothing`)
  } finally {
    await database.close()
  }
}
