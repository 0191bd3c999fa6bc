import type { Database } from '../ports.ts'

/** For so long a key that is about to be issued or renewed is counted, though the read model does not show it yet. */
const UNSEEN_MAX = '60 seconds'

/** The other keys of the tenant that open something now, or are about to. */
const OTHERS = `select
  (select count(*) from api_keys_v1
    where tenant_id = $1 and id <> $2 and state = 'active' and expires_at > $3::timestamptz) +
  (select count(*) from api_key_slots s left join api_keys_v1 k on k.id = s.key_id
    where s.tenant_id = $1 and s.key_id <> $2
    and case when s.renewed then k.state = 'active' and k.expires_at <= $3::timestamptz else k.id is null end) as count`

export type ApiKeySlot = {
  readonly tenant: string
  readonly id: string
  /** Whether the key has expired and is given a new secret; else it is new. */
  readonly renewed: boolean
  /** RFC 3339. */
  readonly now: string
  /** How many live keys the tenant may have. */
  readonly max: number
}

/**
 * Takes a place among the live API keys of a tenant; false when there is none. A new key that has its place already needs
 * no other: the same request again is no second key.
 */
export const takeApiKeySlot = (database: Database, { tenant, id, renewed, now, max }: ApiKeySlot): Promise<boolean> =>
  database.transaction(async sql => {
    // One after the other, on all instances: two that count at once would both find the last place free.
    await sql('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`api keys ${tenant}`])
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
