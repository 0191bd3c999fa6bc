import { ofTenantAfter, TENANT_ORDER } from '../facts/queries.ts'
import { type PageRequest, type PageRow, pageOf, type Query } from '../listQueries.ts'
import { type SubscriptionRow, subscriptions } from './projection.ts'

/** The queries of subscriptions, with the status of their delivery and their dead letters. */

/** The lag is counted up to a limit, because counting all of it would take ever longer. */
export const LAG_MAX = 1_000
/** Dead letters are counted up to this number. */
export const PARKED_MAX = 1_000

/** The status of the delivery, which changes without events. */
export type DeliveryStatus = {
  /** Everything up to this position is in the topic, or parked. */
  readonly position: bigint
  /** Waiting facts among the next LAG_MAX of the tenant. */
  readonly lag: bigint
  readonly parked: bigint
  /** `not_enforced`: the broker has no authorizer; `none`: there is no principal; null as long as there is no topic. */
  readonly acl: 'granted' | 'not_enforced' | 'none' | null
  /** Whether the newest replay has begun. */
  readonly is_current: boolean
  /** The last day on which its creator was seen with a valid credential; null before the first check. */
  readonly seen_on: string | null
}

const STATUS =
  'behind.position, lag.facts as lag, waiting.facts as parked, d.acl, d.replay is not distinct from s.replays as is_current, c.seen_on::text as seen_on'

/** The position of a delivery that has not begun its newest replay is the start of that replay. */
const JOINS = `
  left join subscription_deliveries d on d.subscription_id = s.id
  left join subscription_creators c on c.subscription_id = s.id
  cross join lateral (select case when d.replay = s.replays then d.position else s.from_position - 1 end as position) behind
  cross join lateral (
    select count(*) as facts from (select from parked_facts where delivery = s.id limit ${PARKED_MAX}) counted) waiting
  cross join lateral (
    select count(*) as facts from (
      select f.type, f.at from facts_v1 f where ${ofTenantAfter('s.tenant_id', 'behind.position')}
      order by ${TENANT_ORDER} limit ${LAG_MAX}) next
    where type in (select json_array_elements_text(s.types)) and (s.from_time is null or at >= s.from_time)) lag`

export type ListedSubscription = SubscriptionRow & DeliveryStatus

export const subscriptionPage = (request: PageRequest): Query<PageRow<ListedSubscription>> => {
  const { text, values } = pageOf(subscriptions, request)
  return { text: `select s.*, ${STATUS} from (${text}) s ${JOINS} order by s.created_at desc, s.id desc`, values }
}

/** The status for a row that may be newer than the read model's. */
export const deliveryStatus = (row: SubscriptionRow): Query<DeliveryStatus> => {
  const { id, tenant_id, types, from_position, from_time, replays } = row
  return {
    text: `select ${STATUS} from (select $1::text as id, $2::text as tenant_id, $3::json as types,
      $4::bigint as from_position, $5::timestamptz as from_time, $6::integer as replays) s ${JOINS}`,
    values: [id, tenant_id, JSON.stringify(types), from_position, from_time, replays],
  }
}

/** One row if the topics of the subscription exist, so consumers can read them; else none. */
export const subscriptionWithTopics = (id: string): Query => ({
  text: 'select acl from subscription_deliveries where subscription_id = $1 and acl is not null',
  values: [id],
})

export type DeadLetterRow = {
  readonly position: bigint
  readonly key: string
  readonly type: string
  readonly event_id: string
  readonly reason: string
  readonly attempts: number
  readonly first_failed_at: string
  readonly requested: 'replay' | 'discard' | null
}

/** In the order of delivery. */
export const deadLetterPage = (id: string, after: bigint, limit: number): Query<DeadLetterRow> => ({
  text: `select position, key, type, event_id, reason, attempts, first_failed_at, requested from parked_facts
    where delivery = $1 and position > $2 order by position limit $3`,
  values: [id, after, limit],
})
