import { type PageRequest, pageOf, type Query } from '../page.ts'
import { audit, type AuditRow } from './projection.ts'

/** The query of audit records. */

export const auditPage = (request: PageRequest): Query<AuditRow> => pageOf(audit, request)
