import { byId, type PageRequest, pageOf, type Query } from '../page.ts'
import { type OperationRow, operations } from './projection.ts'

export const operationById = (id: string): Query<OperationRow> => byId(operations, id)
export const operationPage = (request: PageRequest): Query<OperationRow> => pageOf(operations, request)

/** The operations whose time is over and which do not know it yet. */
export const overdueOperations = (now: string, limit: number): Query<{ id: string }> => ({
  text: `select id from operations_v1
    where state in ('pending', 'running', 'succeeded') and expires_at <= $1::timestamptz order by expires_at limit $2`,
  values: [now, limit],
})
