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
