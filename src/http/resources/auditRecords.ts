import { z } from 'zod'
import type { AuditRow } from '../../../projections/audit/projection.ts'
import { auditPage } from '../../../projections/audit/queries.ts'
import { SYSTEM_TENANT } from '../../../streams/envelope.ts'
import { ACCESS_CHECKS } from '../../../streams/access/index.ts'
import { ANOTHER_TENANT } from '../access/denialRecording.ts'
import { permitOperator } from '../access/operators.ts'
import { readPage } from './collection.ts'
import { recordAuditedDecision } from '../../commands/recordAuditedDecision.ts'
import { type AnyRoute, route } from '../route.ts'
import type { Call } from '../services.ts'
import { textSchema, timeSchema } from './commonSchemas.ts'
import { createdQuery, pageQuery, listOf } from './paging.ts'

/** The lists of audit records. The operations that have them are `audited` in their routes. */

const recordSchema = z
  .object({
    id: z.uuid(),
    created_at: timeSchema,
    tenant_id: z.string(),
    decision: z.enum(['granted', 'denied']),
    operation: z.string().meta({ description: 'The operationId of this document.' }),
    check: z.enum(ACCESS_CHECKS).meta({ description: 'The check that refused, or the last one that was passed.' }),
    code: z.string().nullable().meta({ description: 'The error code that the caller got; null for a grant.' }),
    resource: z.string().nullable(),
    subject: z
      .string()
      .meta({ description: `The subject of the credential; "${ANOTHER_TENANT}" for a caller of another tenant.` }),
    client: z.string(),
    authority: z
      .string()
      .meta({ description: 'The required scope, or the internal process that completed the operation.' }),
    correlation_id: z.string().meta({
      description: `The id of the request; one made by the service where the subject is "${ANOTHER_TENANT}".`,
    }),
    position: z.string().meta({ description: 'The position of the event in the log.' }),
    count: z
      .int()
      .min(1)
      .meta({ description: 'The number of decisions of the record; equal refusals are counted in one record.' }),
    reason: z
      .string()
      .nullable()
      .meta({ description: 'The reason that was given with the operation; null where none was.' }),
  })
  .meta({ id: 'AuditRecord' })

const render = ({ check_name: check, position, ...row }: AuditRow): z.input<typeof recordSchema> => ({
  ...row,
  check,
  position: position.toString(),
})

type LookedAt = 'list_audit_records' | 'list_installation_audit_records' | 'list_audit_heads' | 'read_audit_proof'
type Looking = Pick<Call<unknown, unknown, undefined>, 'ledger' | 'context'>

/** Looking at audit data is an audit record itself, which is durable before anything is shown. Throws Unavailable. */
export const recordLook = ({ ledger, context }: Looking, operation: LookedAt, resource: string | null): Promise<void> =>
  recordAuditedDecision(ledger, { type: 'GrantAccess', operation, resource }, context)

const list = {
  method: 'GET',
  tag: 'Audit',
  audited: 'none',
  query: z.object({
    ...pageQuery,
    ...createdQuery,
    decision: recordSchema.shape.decision.optional(),
    operation: textSchema.optional(),
    subject: textSchema.optional(),
    resource: textSchema.optional(),
    correlation_id: textSchema.optional(),
  }),
  ...listOf(recordSchema),
} as const

const listAuditRecords = route({
  ...list,
  path: '/audit-records',
  operationId: 'list_audit_records',
  summary: 'List the decisions on sensitive operations, newest first',
  scope: 'audit:read',
  description: 'Looking at them is an audit record itself.',
  handler: async call => {
    const reply = await readPage(call, { name: 'audit_v2', page: auditPage, render })
    await recordLook(call, 'list_audit_records', null)
    return reply
  },
})

/** The decisions of the operators of the installation, which are about no single tenant. */
const listInstallationRecords = route({
  ...list,
  path: '/installation/audit-records',
  operationId: 'list_installation_audit_records',
  summary: 'List the decisions about the installation, such as rebuilds and the end of API versions, newest first',
  scope: 'audit:installation',
  description:
    'For callers of the tenant of the operators (setting OPERATORS_TENANT). Looking at them is an audit record itself.',
  errors: [...list.errors, 'policy_denied'],
  handler: async call => {
    permitOperator(call)
    const principal = { ...call.principal, tenant: SYSTEM_TENANT }
    const reply = await readPage({ ...call, principal }, { name: 'audit_v2', page: auditPage, render })
    await recordLook(call, 'list_installation_audit_records', null)
    return reply
  },
})

export const auditRoutes: readonly AnyRoute[] = [listAuditRecords, listInstallationRecords]
