import type { CloudEvent } from '../../streams/facts.ts'
import type { Query } from '../listQueries.ts'
import { type FactRow, INTERNAL_TYPES } from './projection.ts'

/** The queries of published facts: pages in the order of arrival, and ranges of the log. */

/**
 * A place in the feed of facts, whose order is that of arrival. A fact stands at its position with `seq` 0, unless it
 * became visible after facts with later positions (a replay of a dead letter): then it stands after those, and `seq`
 * numbers such late facts. No fact therefore appears before a place that a reader has reached.
 */
export type FeedPlace = { readonly arrival: bigint; readonly seq: bigint }

/**
 * SQL for the `seq` of the next late fact: the time in milliseconds, because Postgres has lost the numbers that readers have
 * seen when it was restored.
 */
export const NEXT_SEQ = `greatest((select max(seq) from late_facts) + 1, (extract(epoch from now()) * 1000)::bigint)`

/** The place before everything that arrives at this position or later. */
export const placeBefore = (position: bigint): FeedPlace => ({ arrival: position - 1n, seq: 0n })

export const isAfter = (place: FeedPlace, other: FeedPlace): boolean =>
  place.arrival > other.arrival || (place.arrival === other.arrival && place.seq > other.seq)

export type FactsRequest = {
  readonly tenant: string
  readonly after: FeedPlace
  readonly limit: number
  /** All types when absent. */
  readonly types?: readonly string[] | undefined
  readonly subject?: string | undefined
  readonly from_time?: string | undefined
}

/**
 * A fact that matches. The last row has no event: it has the place up to which the facts were examined, and `is_cut` if
 * there may be more after it.
 */
export type FactsPageRow = FeedPlace & { readonly event: CloudEvent | null; readonly is_cut: boolean | null }

/**
 * At most this many facts of the tenant are examined per page. With a filter that matches few of them a page may be
 * empty; the next one begins after those that were examined.
 */
const EXAMINED_MAX = 2_000

/** A feed ends at the projector's checkpoint, because rows after it are not complete yet. */
const SETTLED = `(select position from checkpoints where name = 'facts_v1')`

/**
 * SQL for the facts of a tenant after a position, and for those up to and including another one. Each bound is one of
 * pairs, and the order is `TENANT_ORDER`, because only the index of the tenant has that order: with the condition
 * `tenant_id = …` Postgres may follow the index of the positions alone, and so read the facts of all other tenants.
 */
export const ofTenantAfter = (tenant: string, after: string): string =>
  `(f.tenant_id, f.position) > (${tenant}, ${after}) and f.tenant_id <= ${tenant}`
export const ofTenantBetween = (tenant: string, after: string, to: string): string =>
  `(f.tenant_id, f.position) > (${tenant}, ${after}) and (f.tenant_id, f.position) <= (${tenant}, ${to})`
export const TENANT_ORDER = 'f.tenant_id, f.position'

/** A late fact stands at its arrival only and is skipped at its position. */
const feedOf = (ofTenant: boolean, members: readonly string[]): string => `
  (select f.position as arrival, 0::bigint as seq, f.position, ${members.map(name => `f.${name}`).join(', ')},
      exists (select from late_facts l where l.position = f.position) as is_elsewhere
    from facts_v1 f where ${ofTenant ? ofTenantBetween('$4', '$1', SETTLED) : `f.position > $1 and f.position <= ${SETTLED}`}
    order by ${ofTenant ? TENANT_ORDER : 'f.position'} limit $3)
  union all
  (select l.arrival, l.seq, l.position, ${members.map(name => `f.${name}`).join(', ')}, false as is_elsewhere
    from late_facts l join facts_v1 f on f.position = l.position
    where ${ofTenant ? 'l.tenant_id = $4 and' : ''} (l.arrival, l.seq) > ($1, $2) and l.arrival <= ${SETTLED}
    order by l.arrival, l.seq limit $3)
  order by arrival, seq limit $3`

/** In the order of arrival, which is that of the log except for late facts. All rows are of one snapshot. */
export const factsPage = ({ tenant, after, limit, ...filters }: FactsRequest): Query<FactsPageRow> => {
  const isFiltered = Object.values(filters).some(filter => filter !== undefined)
  const values: unknown[] = [after.arrival, after.seq, isFiltered ? EXAMINED_MAX : limit, tenant, limit]
  const where = ['not is_elsewhere']
  if (filters.types !== undefined) where.push(`type = any($${values.push(filters.types)}::text[])`)
  if (filters.subject !== undefined) where.push(`subject = $${values.push(filters.subject)}`)
  if (filters.from_time !== undefined) where.push(`at >= $${values.push(filters.from_time)}::timestamptz`)
  return {
    text: `with looked as materialized (${feedOf(true, ['type', 'subject', 'at'])}),
      found as (select * from looked where ${where.join(' and ')} order by arrival, seq limit $5)
      select found.arrival, found.seq, facts_v1.event, null::boolean as is_cut
        from found join facts_v1 on facts_v1.position = found.position
      union all
      (select arrival, seq, null, (select count(*) from looked) >= $3 from looked order by arrival desc, seq desc limit 1)
      order by arrival, seq, is_cut nulls first`,
    values,
  }
}

/** The place of the newest fact up to the checkpoint; no row if there is none. */
export const lastPlace: Query<FeedPlace> = {
  text: `select arrival, seq from (
      (select position as arrival, 0::bigint as seq from facts_v1 where position <= ${SETTLED}
        order by position desc limit 1)
      union all
      (select arrival, seq from late_facts where arrival <= ${SETTLED} order by arrival desc, seq desc limit 1)) newest
    order by arrival desc, seq desc limit 1`,
  values: [],
}

export type TailFact = FeedPlace &
  Pick<FactRow, 'tenant_id' | 'type' | 'subject' | 'event'> & {
    /** A late fact is skipped here, because it stands at its arrival. */
    readonly is_elsewhere: boolean
  }

export const factsAfter = ({ arrival, seq }: FeedPlace, limit: number): Query<TailFact> => ({
  text: feedOf(false, ['tenant_id', 'type', 'subject', 'event']),
  values: [arrival, seq, limit],
})

export type FactIdsRequest = {
  /** All tenants when absent. */
  readonly tenant?: string | undefined
  /** Facts after this position, up to and including the other one. */
  readonly after: bigint
  readonly to: bigint
  readonly limit: number
}
export type FactId = { readonly position: bigint; readonly subject: string; readonly id: string }

/**
 * In the order of the log, for all topics: a page of one topic alone might have to search the whole history, which no
 * statement may take that long for.
 */
export const factIds = ({ tenant, after, to, limit }: FactIdsRequest): Query<FactId> => {
  const members = `select f.position, f.subject, f.event->>'id' as id from facts_v1 f`
  if (tenant === undefined)
    return {
      text: `${members} where f.position > $1 and f.position <= $2 order by f.position limit $3`,
      values: [after, to, limit],
    }
  return {
    text: `${members} where ${ofTenantBetween('$4', '$1', '$2')} order by ${TENANT_ORDER} limit $3`,
    values: [after, to, limit, tenant],
  }
}

/** The position of the fact of the tenant with this number in the range, counted from 1; no row with fewer facts. */
export const nthFact = (
  { tenant, after, to }: Required<Omit<FactIdsRequest, 'limit'>>,
  n: number,
): Query<{ position: bigint }> => ({
  text: `select f.position from facts_v1 f where ${ofTenantBetween('$4', '$1', '$2')} order by ${TENANT_ORDER}
    offset $3 limit 1`,
  values: [after, to, n - 1, tenant],
})

export type MissingRequest = Omit<FactIdsRequest, 'after'> & {
  /** Inclusive, like `to`. */
  readonly from: bigint
  /** The id prefix of the topic's subjects: `inv` for invoices. */
  readonly prefix: string
}
export type MissingRow = { readonly id: string; readonly position: bigint }

/**
 * Events of the range that the projector has parked and that are facts or may be: an event that cannot be decoded and
 * those of its key after it. One without a tenant may belong to any.
 */
export const missingFacts = ({ tenant, from, to, prefix, limit }: MissingRequest): Query<MissingRow> => ({
  text: `select event_id as id, position from parked_facts where delivery = 'facts_v1'
    and position >= $1 and position <= $2 and starts_with(key, $3) and not type = any($4::text[])
    ${tenant === undefined ? '' : "and tenant_id in ($6, '')"} order by position limit $5`,
  values: [from, to, `${prefix}_`, INTERNAL_TYPES, limit, ...(tenant === undefined ? [] : [tenant])],
})

export const firstFact: Query<{ at: string }> = {
  text: 'select at from facts_v1 order by position limit 1',
  values: [],
}

export type SubscribedFactsRequest = {
  readonly tenant: string
  readonly types: readonly string[]
  readonly from_time: string | null
  /** Facts after this position, up to and including the other one. */
  readonly after: bigint
  readonly to: bigint
  readonly limit: number
}

/**
 * Facts of the tenant in the order of the log, with `event` only for those that match. The others are returned so that
 * the reader advances, because a page of rare types alone might have to search the whole history.
 */
export const subscribedFacts = ({
  tenant,
  types,
  from_time,
  after,
  to,
  limit,
}: SubscribedFactsRequest): Query<{ position: bigint; event: CloudEvent | null }> => ({
  text: `select f.position,
      case when f.type = any($4::text[]) and ($5::timestamptz is null or f.at >= $5) then f.event end as event
    from facts_v1 f where ${ofTenantBetween('$1', '$2', '$3')} order by ${TENANT_ORDER} limit $6`,
  values: [tenant, after, to, types, from_time, limit],
})

export const factsAt = (positions: readonly bigint[]): Query<Pick<FactRow, 'position' | 'event'>> => ({
  text: 'select position, event from facts_v1 where position = any($1::bigint[])',
  values: [positions],
})
