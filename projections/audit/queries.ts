import { type PageRequest, type PageRow, pageOf, type Query } from '../listQueries.ts'
import { audit, type AuditRow } from './projection.ts'

export const auditPage = (request: PageRequest): Query<PageRow<AuditRow>> =>
  pageOf(audit, request, { columns: ['correlation_id'] })
