import type { AnyEvent } from '../../streams/decider.ts'
import type { Journal } from '../projection.ts'
import { type Verdict, verdictOf } from '../auditedEvents.ts'

/** One decision on an audited operation: caller, operation, outcome, and the check that decided. */
export type AuditRow = Required<Verdict> & {
  /** The id of the event that the record is made from. */
  readonly id: string
  readonly position: bigint
  readonly tenant_id: string
  readonly created_at: string
  readonly subject: string
  readonly client: string
  readonly authority: string
  readonly correlation_id: string
}

export const audit: Journal<AnyEvent, AuditRow> = {
  name: 'audit_v2',
  categories: ['access', 'invoice', 'payment', 'operation', 'apiKey', 'tenant', 'period', 'subscription'],
  columns: {
    id: 'text',
    position: 'bigint',
    tenant_id: 'text',
    created_at: 'timestamptz',
    decision: 'text',
    operation: 'text',
    check_name: 'text',
    code: 'text',
    resource: 'text',
    subject: 'text',
    client: 'text',
    authority: 'text',
    correlation_id: 'text',
    count: 'integer',
    reason: 'text',
  },
  key: ['id'],
  rows: recorded => {
    const verdict = verdictOf(recorded)
    if (verdict === undefined) return []
    const { eventId, position, metadata } = recorded
    const { tenant, subject, client, authority, correlationId, at } = metadata
    const who = { tenant_id: tenant, subject, client, authority, correlation_id: correlationId }
    return [{ id: eventId, position, created_at: at, ...who, count: 1, reason: null, ...verdict }]
  },
}
