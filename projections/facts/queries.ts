import type { CloudEvent } from '../../streams/facts.ts'
import type { Query } from '../page.ts'
import type { FactRow } from './projection.ts'

export type FactsRequest = {
  readonly tenant: string
  /** Facts behind this position. */
  readonly after: bigint
  readonly limit: number
  readonly type?: string | undefined
  readonly subject?: string | undefined
  readonly from_time?: string | undefined
}

/** In the order of the log. */
export const factsPage = ({ tenant, after, limit, ...filters }: FactsRequest): Query<FactRow> => {
  const values: unknown[] = [tenant, after, limit]
  const where = ['tenant_id = $1', 'position > $2']
  if (filters.type !== undefined) where.push(`type = $${values.push(filters.type)}`)
  if (filters.subject !== undefined) where.push(`subject = $${values.push(filters.subject)}`)
  if (filters.from_time !== undefined) where.push(`at >= $${values.push(filters.from_time)}::timestamptz`)
  return {
    text: `select position, event from facts_v1 where ${where.join(' and ')} order by position limit $3`,
    values,
  }
}

export type FactIdsRequest = {
  /** All tenants when absent. */
  readonly tenant?: string | undefined
  /** Facts behind this position, up to and with the other one. */
  readonly after: bigint
  readonly to: bigint
  readonly limit: number
}
export type FactId = { readonly position: bigint; readonly subject: string; readonly id: string }

/**
 * In the order of the log, of every topic: a page of one topic alone might have to search the whole history for its
 * rows, and no statement may take that long.
 */
export const factIds = ({ tenant, after, to, limit }: FactIdsRequest): Query<FactId> => ({
  text: `select position, subject, event->>'id' as id from facts_v1
    where position > $1 and position <= $2 ${tenant === undefined ? '' : 'and tenant_id = $4'} order by position limit $3`,
  values: [after, to, limit, ...(tenant === undefined ? [] : [tenant])],
})

/** When the ledger's first fact came to be. */
export const firstFact: Query<{ at: string }> = {
  text: 'select at from facts_v1 order by position limit 1',
  values: [],
}

export type SubscribedFactsRequest = {
  readonly tenant: string
  readonly types: readonly string[]
  readonly from_time: string | null
  /** Facts behind this position, up to and with the other one. */
  readonly after: bigint
  readonly to: bigint
  readonly limit: number
}

/**
 * Facts of the tenant in the order of the log; the event only of those that were asked for. Rows without one tell how far
 * the reader has come: a page of rare types alone might have to search the whole history.
 */
export const subscribedFacts = ({
  tenant,
  types,
  from_time,
  after,
  to,
  limit,
}: SubscribedFactsRequest): Query<{ position: bigint; event: CloudEvent | null }> => ({
  text: `select position, case when type = any($4::text[]) and ($5::timestamptz is null or at >= $5) then event end as event
    from facts_v1 where tenant_id = $1 and position > $2 and position <= $3 order by position limit $6`,
  values: [tenant, after, to, types, from_time, limit],
})

/** The facts at these positions. */
export const factsAt = (positions: readonly bigint[]): Query<Pick<FactRow, 'position' | 'event'>> => ({
  text: 'select position, event from facts_v1 where position = any($1::bigint[])',
  values: [positions],
})
