import { type PageRequest, type PageRow, pageOf, type Query } from '../listQueries.ts'
import { type OperationRow, operations } from './projection.ts'

/** The progress of the row's attempt; null when it has reported none. */
export type ListedOperation = OperationRow & {
  readonly tick: number | null
  readonly done: bigint | null
  readonly total: bigint | null
  readonly rate: bigint | null
  readonly eta_seconds: bigint | null
}

export const operationPage = (request: PageRequest): Query<PageRow<ListedOperation>> => {
  const { text, values } = pageOf(operations, request)
  return {
    text: `select listed.*, tick, done, total, rate, eta_seconds from (${text}) listed
      left join operation_progress on operation_id = listed.id and operation_progress.attempt = listed.attempt
      order by created_at desc, id desc`,
    values,
  }
}

/** The operations that expire first, or have expired, and have no event for it yet. */
export const nextToExpire = (limit: number): Query<{ id: string; expires_at: string }> => ({
  text: `select id, expires_at from operations_v1
    where state in ('pending', 'running', 'succeeded') order by expires_at, id limit $1`,
  values: [limit],
})
