import { type Database, type Sql, Unavailable } from '../ports.ts'
import { LOCK_NAMES } from '../schema/locks.ts'

/** The quota of subscriptions of a tenant. */

/**
 * A reservation that is not marked as created after this time is taken for that of a subscription that was never
 * created.
 */
const UNSEEN_MAX = '60 seconds'

type Wanted = { readonly tenant: string; readonly id: string; readonly max: number }

/**
 * Has a row for a subscription that was created, also before the read model shows it: a repeated request needs no other
 * place.
 */
const EXISTS = `select 1 from subscriptions_v1 where id = $2 and tenant_id = $1
  union all select 1 from subscription_places where tenant_id = $1 and subscription_id = $2 and is_created`

const FORGET = `delete from subscription_places where tenant_id = $1 and (
  exists (select 1 from subscriptions_v1 s where s.id = subscription_id)
  or (not is_created and taken_at < now() - interval '${UNSEEN_MAX}'))`

/**
 * A deleted subscription counts until its topics are removed; otherwise topics could be created faster than they are
 * removed.
 */
const OTHERS = `
  select (select count(*) from subscriptions_v1 s where s.tenant_id = $1 and s.id <> $2 and (s.state <> 'deleted'
      or exists (select 1 from subscription_deliveries d where d.subscription_id = s.id)))
    + (select count(*) from subscription_places where tenant_id = $1 and subscription_id <> $2) as count`

const take = async (sql: Sql, { tenant, id, max }: Wanted): Promise<boolean> => {
  // The advisory lock serializes reservations on all instances; otherwise two that count at once would both find the
  // last one free.
  await sql('select pg_advisory_xact_lock(hashtextextended($1, 0))', [LOCK_NAMES.subscriptionsOf(tenant)])
  const own = [tenant, id]
  if ((await sql(EXISTS, own)).length > 0) return true
  await sql(FORGET, [tenant])
  const [others] = await sql<{ count: bigint }>(OTHERS, own)
  if (Number(others?.count ?? 0) >= max) return false
  await sql(
    `insert into subscription_places (tenant_id, subscription_id) values ($1, $2)
      on conflict (tenant_id, subscription_id) do update set taken_at = now()`,
    own,
  )
  return true
}

/** Reserves one of the subscriptions that a tenant may have; false when the limit is reached. */
export const takeSubscriptionSlot = (database: Database, wanted: Wanted): Promise<boolean> =>
  database.transaction(sql => take(sql, wanted))

/** Keeps the reservation until the read model shows the subscription, however far it is behind. */
export const keepSubscriptionSlot = async ({ sql }: Database, tenant: string, id: string): Promise<void> => {
  try {
    await sql('update subscription_places set is_created = true where tenant_id = $1 and subscription_id = $2', [
      tenant,
      id,
    ])
  } catch (error) {
    // A failure here changes nothing: the subscription is created, and the read model will show it.
    if (!(error instanceof Unavailable)) throw error
  }
}
