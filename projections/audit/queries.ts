import { type PageRequest, type PageRow, pageOf, type Query } from '../page.ts'
import { audit, type AuditRow } from './projection.ts'

export const auditPage = (request: PageRequest): Query<PageRow<AuditRow>> =>
  pageOf(audit, request, { columns: ['correlation_id'] })
