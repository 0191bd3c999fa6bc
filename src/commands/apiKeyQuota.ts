import type { Database } from '../ports.ts'
import { LOCK_NAMES } from '../schema/locks.ts'

/** The quota of live API keys of a tenant. */

/** A key that is being issued or renewed counts for this long, although the read model does not show it yet. */
const UNSEEN_MAX = '60 seconds'

/** The number of the tenant's other keys that are valid now, or are being issued or renewed. */
const OTHERS = `select
  (select count(*) from api_keys_v1
    where tenant_id = $1 and id <> $2 and state = 'active' and expires_at > $3::timestamptz) +
  (select count(*) from api_key_slots s left join api_keys_v1 k on k.id = s.key_id
    where s.tenant_id = $1 and s.key_id <> $2
    and case when s.renewed then k.state = 'active' and k.expires_at <= $3::timestamptz else k.id is null end) as count`

export type ApiKeySlot = {
  readonly tenant: string
  readonly id: string
  /** True for an expired key that gets a new secret; false for a new key. */
  readonly renewed: boolean
  /** RFC 3339. */
  readonly now: string
  /** The largest number of live keys of a tenant. */
  readonly max: number
}

/**
 * Reserves one of the live API keys that a tenant may have; false when the limit is reached. A repeated request finds
 * the key or its reservation, and needs no other.
 */
export const takeApiKeySlot = (database: Database, { tenant, id, renewed, now, max }: ApiKeySlot): Promise<boolean> =>
  database.transaction(async sql => {
    // The advisory lock serializes reservations on all instances; otherwise two that count at once would both find the
    // last one free.
    await sql('select pg_advisory_xact_lock(hashtextextended($1, 0))', [LOCK_NAMES.apiKeysOf(tenant)])
    await sql(`delete from api_key_slots where tenant_id = $1 and taken_at <= now() - interval '${UNSEEN_MAX}'`, [
      tenant,
    ])
    const known = 'select 1 from api_keys_v1 where id = $1 union all select 1 from api_key_slots where key_id = $1'
    if (!renewed && (await sql(known, [id])).length > 0) return true
    const [others] = await sql<{ count: bigint }>(OTHERS, [tenant, id, now])
    if (Number(others?.count ?? 0) >= max) return false
    await sql(
      `insert into api_key_slots (tenant_id, key_id, renewed) values ($1, $2, $3)
        on conflict (tenant_id, key_id) do update set renewed = $3, taken_at = now()`,
      [tenant, id, renewed],
    )
    return true
  })
