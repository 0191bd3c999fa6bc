import { ofTenantBetween, TENANT_ORDER } from '../../projections/facts/queries.ts'
import type { SubscriptionRow } from '../../projections/subscriptions/projection.ts'
import type { Sql } from '../ports.ts'
import { EpochSuperseded } from './checkpoints.ts'
import { deleteDeadLettersOf } from './deadLetters.ts'

/** `not_enforced`: the broker has no authorizer; `none`: the subscription has no principal. */
export type Acl = 'granted' | 'not_enforced' | 'none'

export type DeliveryCheckpoint = {
  readonly id: string
  readonly epoch: bigint
  /** The number of the replay that the position belongs to. */
  readonly replay: number
  readonly position: bigint
}

export type SubscriptionDelivery = SubscriptionRow & {
  /** Null before its first delivery. */
  readonly replay: number | null
  readonly position: bigint | null
  readonly acl: Acl | null
  /** The bytes that Kafka keeps of each partition; null before there is a topic. */
  readonly topic_bytes: bigint | null
  /** The last day on which its creator was seen with a valid credential; null before the first check. */
  readonly seen_on: string | null
  /** Facts of its tenant come after its position. */
  readonly is_behind: boolean
  /** Dead letters are not on its dead letter topic yet. */
  readonly has_unannounced: boolean
}

/** The position reached. Before the newest replay has begun it is the position before the start of that replay. */
const REACHED = 'case when d.replay = s.replays then d.position else s.from_position - 1 end'

/** Not an `exists`: Postgres drops its order, and may then search the facts of all tenants for one of this tenant. */
const nextFact = (column: 'position' | 'at'): string => `select f.${column} from facts_v1 f
  where ${ofTenantBetween('s.tenant_id', REACHED, '$1')} order by ${TENANT_ORDER} limit 1`

const UNANNOUNCED = `select p.position from parked_facts p
  where not p.announced and p.delivery <> 'publisher' and p.delivery = s.id order by p.position limit 1`

/**
 * All that are not deleted, and deleted ones that still have topics, with a single probe of an index for each question.
 */
const DELIVERIES = `
  select s.*, d.replay, d.position, d.acl, d.topic_bytes, c.seen_on::text as seen_on,
    s.state = 'active' and (${nextFact('position')}) is not null as is_behind,
    (${UNANNOUNCED}) is not null as has_unannounced
  from subscriptions_v1 s left join subscription_deliveries d on d.subscription_id = s.id
    left join subscription_creators c on c.subscription_id = s.id
  where s.state <> 'deleted'
  union all
  select s.*, d.replay, d.position, d.acl, d.topic_bytes, null, false, false
  from subscription_deliveries d join subscriptions_v1 s on s.id = d.subscription_id and s.state = 'deleted'
  order by id`

/** `projectedUpTo`: the checkpoint of the facts projection. */
export const deliveriesUpTo = (sql: Sql, projectedUpTo: bigint): Promise<SubscriptionDelivery[]> =>
  sql<SubscriptionDelivery>(DELIVERIES, [projectedUpTo])

/** A replay delivers old facts: the time since its position was last moved counts, not their age. */
const LONGEST_STUCK = `
  select extract(epoch from now() - min(greatest(d.updated_at, next.at)))::float8 as seconds
  from subscriptions_v1 s left join subscription_deliveries d on d.subscription_id = s.id
    cross join lateral (${nextFact('at')}) next
  where s.state = 'active'`

/** For how many seconds any active subscription has had facts to deliver and delivered none. */
export const longestStuck = async (sql: Sql, projectedUpTo: bigint): Promise<number> => {
  const [row] = await sql<{ seconds: number | null }>(LONGEST_STUCK, [projectedUpTo])
  return Math.max(0, row?.seconds ?? 0)
}

/** Acquires the checkpoint for this epoch, and creates it if there is none. Throws EpochSuperseded in an old epoch. */
export const acquireDelivery = async (
  sql: Sql,
  { id, epoch, replay, position }: DeliveryCheckpoint,
): Promise<DeliveryCheckpoint> => {
  const [row] = await sql<{ replay: number; position: bigint }>(
    `insert into subscription_deliveries (subscription_id, epoch, replay, position) values ($1, $2, $3, $4)
      on conflict (subscription_id) do update set epoch = excluded.epoch
      where subscription_deliveries.epoch <= excluded.epoch returning replay, position`,
    [id, epoch, replay, position],
  )
  if (row === undefined) throw new EpochSuperseded(id)
  return { id, epoch, replay: row.replay, position: row.position }
}

const updateDelivery = async (
  sql: Sql,
  { id, epoch }: DeliveryCheckpoint,
  set: string,
  values: readonly unknown[],
): Promise<void> => {
  const text = `update subscription_deliveries set ${set}
    where subscription_id = $1 and epoch = $2 returning subscription_id`
  if ((await sql(text, [id, epoch, ...values])).length === 0) throw new EpochSuperseded(id)
}

/** Runs in the transaction in which facts are parked. Throws EpochSuperseded in an old epoch, which undoes that. */
export const moveDelivery = (sql: Sql, checkpoint: DeliveryCheckpoint): Promise<void> =>
  updateDelivery(sql, checkpoint, 'position = greatest(position, $3), updated_at = now()', [checkpoint.position])

/** Continues from another position, for a replay: only a replay moves a position back. */
export const restartDelivery = (sql: Sql, checkpoint: DeliveryCheckpoint): Promise<void> =>
  updateDelivery(sql, checkpoint, 'position = $3, replay = $4, updated_at = now()', [
    checkpoint.position,
    checkpoint.replay,
  ])

export const noteAcl = (sql: Sql, checkpoint: DeliveryCheckpoint, acl: Acl | null): Promise<void> =>
  updateDelivery(sql, checkpoint, 'acl = $3', [acl])

export const noteTopics = (
  sql: Sql,
  checkpoint: DeliveryCheckpoint,
  { acl, topicBytes }: { readonly acl: Acl; readonly topicBytes: number },
): Promise<void> => updateDelivery(sql, checkpoint, 'acl = $3, topic_bytes = $4', [acl, topicBytes])

/** Removes the checkpoint, the dead letters and the noted creator of a deleted subscription. */
export const removeDelivery = async (sql: Sql, id: string): Promise<void> => {
  await deleteDeadLettersOf(sql, id)
  await sql('delete from subscription_creators where subscription_id = $1', [id])
  await sql('delete from subscription_deliveries where subscription_id = $1', [id])
}
