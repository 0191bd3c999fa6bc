import { type Database, unlessUnavailable } from '../../ports.ts'
import { LOCK_NAMES } from '../../schema/locks.ts'

/** A place is taken before the event that needs it is appended, so two requests cannot both take the last one. */

/** A reservation whose resource the read model does not show after this time is taken for one that was never created. */
const UNSEEN_MAX = '60 seconds'

const STALE = `(not r.is_created and r.taken_at <= now() - interval '${UNSEEN_MAX}')`

/** The place that is asked for: the queries below are joined to it, because each needs other members. */
const PLACE = `(select $1::text as tenant_id, $2::text as id, $3::text as owner, $4::timestamptz as at) p`

/** The other reservations that count. Those that are over are left out here too: the read model may show one just now. */
const reserved = (kind: string, isOver: string): string =>
  `select count(*) from reservations r
    where r.kind = '${kind}' and r.tenant_id = p.tenant_id and r.id <> p.id and not ${isOver}`

const EXPORT_IS_OVER = `coalesce(
  (select o.state not in ('pending', 'running') from operations_v1 o where o.id = r.id), ${STALE})`
const KEY_IS_OVER = `(${STALE} or exists (select from api_keys_v1 k where k.id = r.id))`
const SUBSCRIPTION_IS_OVER = `(${STALE} or exists (select from subscriptions_v1 s where s.id = r.id))`

/** Live keys, those about to be issued, and expired ones about to get a new secret. `at`: the present time. */
const API_KEYS = `
  (select count(*) from api_keys_v1 k
    where k.tenant_id = p.tenant_id and k.id <> p.id and k.state = 'active' and k.expires_at > p.at)
  + (${reserved('api_keys', KEY_IS_OVER)})
  + (${reserved('api_key_renewals', STALE)}
    and exists (select from api_keys_v1 k where k.id = r.id and k.state = 'active' and k.expires_at <= p.at)) as tenant`

type Quota = {
  /** The quotas of one lock are counted together. */
  readonly lock: string
  /** The read model. A repeated request for a resource that it shows needs no other place. */
  readonly shownIn?: string
  /** Whether the reservation `r` does not count any more, because the read model counts its resource, or none came. */
  readonly isOver: string
  /** The places in use beside this one, for each limit. */
  readonly used: string
}

const QUOTAS = {
  /** `owner`: the caller. `at`: files of exports before this time are deleted. Bytes are known when an export is done. */
  exports: {
    lock: 'exports',
    shownIn: 'operations_v1',
    isOver: EXPORT_IS_OVER,
    used: `(${reserved('exports', EXPORT_IS_OVER)} and r.owner = p.owner) as caller,
      (${reserved('exports', EXPORT_IS_OVER)}) as tenant,
      (select coalesce(sum(o.byte_count), 0)::bigint from operations_v1 o
        where o.tenant_id = p.tenant_id and o.created_at >= p.at and o.state = 'succeeded') as bytes`,
  },
  api_keys: { lock: 'api keys', shownIn: 'api_keys_v1', isOver: KEY_IS_OVER, used: API_KEYS },
  api_key_renewals: { lock: 'api keys', isOver: STALE, used: API_KEYS },
  /** A deleted one counts until its topics are removed; else topics could be created faster than they are removed. */
  subscriptions: {
    lock: 'subscriptions',
    shownIn: 'subscriptions_v1',
    isOver: SUBSCRIPTION_IS_OVER,
    used: `
      (select count(*) from subscriptions_v1 s where s.tenant_id = p.tenant_id and s.id <> p.id and (s.state <> 'deleted'
        or exists (select from subscription_deliveries d where d.subscription_id = s.id)))
      + (${reserved('subscriptions', SUBSCRIPTION_IS_OVER)}) as tenant`,
  },
} satisfies Readonly<Record<string, Quota>>

export type ReservationKind = keyof typeof QUOTAS
export type Limit = 'caller' | 'tenant' | 'bytes'
const LIMITS = ['caller', 'tenant', 'bytes'] as const

export type Place = {
  readonly kind: ReservationKind
  readonly tenant: string
  readonly id: string
  /** The caller, where a limit of callers is set. */
  readonly owner?: string
  /** RFC 3339. */
  readonly at?: string
  readonly max: Readonly<Partial<Record<Limit, number>>>
}

/** Takes the place. Resolves to the limit that is reached; undefined when it is taken, by this request or before. */
export const reserve = (
  database: Database,
  { kind, tenant, id, owner = '', at, max }: Place,
): Promise<Limit | undefined> =>
  database.transaction(async sql => {
    const { lock, shownIn, isOver, used }: Quota = QUOTAS[kind]
    // Serializes reservations on all instances; otherwise two that count at once would both find the last one free.
    await sql('select pg_advisory_xact_lock(hashtextextended($1, 0))', [LOCK_NAMES.reservationsOf(lock, tenant)])
    const exists = `select 1 from ${shownIn} where tenant_id = $2 and id = $3
      union all select 1 from reservations where kind = $1 and tenant_id = $2 and id = $3 and is_created`
    if (shownIn !== undefined && (await sql(exists, [kind, tenant, id])).length > 0) return undefined
    await sql(`delete from reservations r where r.kind = $1 and r.tenant_id = $2 and ${isOver}`, [kind, tenant])
    const [inUse] = await sql<Partial<Record<Limit, bigint>>>(`select ${used} from ${PLACE}`, [tenant, id, owner, at])
    const reached = LIMITS.find(limit => (inUse?.[limit] ?? 0n) >= (max[limit] ?? Number.POSITIVE_INFINITY))
    if (reached !== undefined) return reached
    await sql(
      `insert into reservations (kind, tenant_id, id, owner) values ($1, $2, $3, $4)
        on conflict (kind, tenant_id, id) do update set taken_at = now()`,
      [kind, tenant, id, owner],
    )
    return undefined
  })

/** Keeps the reservation until the read model shows the resource, however far it is behind. */
export const keepReservation = async (
  { sql }: Database,
  { kind, tenant, id }: Pick<Place, 'kind' | 'tenant' | 'id'>,
): Promise<void> => {
  const text = 'update reservations set is_created = true where kind = $1 and tenant_id = $2 and id = $3'
  // A failure here changes nothing: the resource is created, and the read model will show it.
  await unlessUnavailable(sql(text, [kind, tenant, id]))
}
