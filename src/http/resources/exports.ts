import { z } from 'zod'
import type { OperationRow } from '../../../projections/operations/projection.ts'
import { idSchema, type OperationId } from '../../../streams/ids.ts'
import { EXPORT_FORMATS, EXPORT_RESOURCES } from '../../../streams/operation/index.ts'
import { replay } from '../../commands/idempotency/creation.ts'
import { operationEntity } from '../../commands/entities.ts'
import { createExportOnce, type NewExport as ExportToCreate } from '../../commands/exports.ts'
import { withTexts } from '../../personalTexts/personalTexts.ts'
import { idOfKey } from '../../commands/idempotency/record.ts'
import type { JsonObject } from '../../ports.ts'
import { SCOPE_OF } from '../../identity/resourceScopes.ts'
import { finishedExport, readContent, recordExportRead } from './exportContent.ts'
import { deleteExport } from './exportDeletion.ts'
import { idempotencyRecordIfKeyed, idempotencyRecordOf } from '../request/idempotencyKey.ts'
import { invoiceFilters } from './invoices.ts'
import { renderOperation } from './operations.ts'
import { operationSchema } from './operationSchema.ts'
import { orderFilters } from './orderSchemas.ts'
import { definedOnly } from './paging.ts'
import { postingFilters } from './books/bookSchemas.ts'
import { paymentFilters } from './payments.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { replyToCreation, readOne, textsFor } from './commonReplies.ts'
import { exportFilters } from './paymentReferences.ts'
import { type AnyRoute, type Reply, route } from '../route.ts'
import type { Call, LogCall } from '../services.ts'
import { CREATED_HEADERS, metadataSchema, timeSchema, NOT_MODIFIED } from './commonSchemas.ts'

const formatSchema = z.enum(EXPORT_FORMATS)

const newExportOf = <R extends string, F extends z.ZodRawShape>(resource: R, filters: F) =>
  z.strictObject({
    resource: z.literal(resource),
    format: formatSchema,
    filters: z.strictObject(filters).optional().meta({ description: 'The filters of the resource’s list.' }),
    metadata: metadataSchema.default({}),
  })

const newExport = z
  .discriminatedUnion('resource', [
    newExportOf('orders', orderFilters),
    newExportOf('invoices', invoiceFilters),
    newExportOf('payments', paymentFilters),
    newExportOf('journal_entries', postingFilters),
  ])
  .meta({ id: 'NewExport' })

const common = { tag: 'Exports' } as const
const OPERATIONS = '/operations'

const createExport = route({
  ...common,
  rateClass: 'exports',
  method: 'POST',
  path: '/exports',
  operationId: 'create_export',
  audited: 'created',
  summary: 'Export orders, invoices, payments or the journal to a file',
  description:
    'A file of journal_entries has one row for each posting, oldest first, with the balance of its account after the entry. With the ' +
    'filter account it is the statement of that account; created_after and created_before are bounds of the time of the entry: from ' +
    'created_after, which is included, to before created_before.',
  scope: 'exports:write',
  body: newExport,
  idempotencyKey: 'honoured',
  responses: {
    202: {
      description: 'The export is accepted and continues without this connection. The operation shows its progress.',
      schema: operationSchema,
      headers: CREATED_HEADERS,
    },
  },
  errors: ['quota_exceeded'],
  handler: async call => {
    call.requireScopes([SCOPE_OF[call.body.resource]])
    return acceptedReply(await replyToCreation(call, await createOnce(call), OPERATIONS, renderOperation))
  },
  replay: async call => {
    call.requireScopes([SCOPE_OF[call.body.resource]])
    const { ledger, idempotency } = call
    const record = idempotencyRecordOf(idempotency, call, comparable(call, (await filtersOf(call)).compared))
    const replayed = await replay(ledger, operationEntity, idOfKey('op', idempotency), record)
    return replayed && acceptedReply(await replyToCreation(call, replayed, OPERATIONS, renderOperation))
  },
})

type NewExport = z.output<typeof newExport>

const filtersOf = (call: LogCall<unknown, unknown, NewExport>) =>
  exportFilters(call, definedOnly(call.body.filters ?? {}))

/** The request as it is compared with a later one under its key. */
const comparable = ({ body }: LogCall<unknown, unknown, NewExport>, filters: JsonObject) => {
  const { resource, format, metadata } = body
  return { resource, format, filters, metadata } satisfies JsonObject
}

/** Creates the export, or finds the one that the same key created. Throws Problem: 429; Unavailable. */
const createOnce = async (call: Call<unknown, unknown, NewExport>) => {
  const { principal, idempotency, concurrencyLimits, exportBytesPerTenant: bytes } = call
  const { exports: caller, tenant_exports: tenant } = concurrencyLimits.settings
  const { resource, format, metadata } = call.body
  const { compared, find } = await filtersOf(call)
  const max = { caller, tenant, bytes }
  const created = await createExportOnce(call, {
    key: idempotency,
    idempotencyRecord: idempotencyRecordIfKeyed(call, comparable(call, compared)),
    terms: { resource, format, metadata },
    filters: find,
    caller: principal,
    max,
  })
  if (created.kind === 'quota_exceeded') throw new Problem('quota_exceeded', { detail: refusalOf(max)[created.limit] })
  return created
}

const acceptedReply = (reply: Reply): Reply => ({ ...reply, status: 202 })

const refusalOf = ({ caller, tenant, bytes }: ExportToCreate['max']) => ({
  caller: `You have ${caller} unfinished exports, the maximum. Try again when one of them has finished.`,
  tenant: `Your tenant has ${tenant} unfinished exports, the maximum. Try again when one of them has finished.`,
  bytes:
    `The export files of your tenant have reached their limit of ${bytes} bytes. ` +
    'Delete files that you no longer need (DELETE /exports/{id}), or wait until some expire.',
})

const manifestSchema = z
  .object({
    operation_id: idSchema('op'),
    resource: z.enum(EXPORT_RESOURCES),
    format: formatSchema,
    filters: z.record(z.string(), z.string()),
    row_count: z.int().min(0),
    byte_count: z.int().min(0),
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .meta({ description: 'SHA-256 of the bytes of the file, in hexadecimal.' }),
    from_position: z.string(),
    to_position: z.string().meta({
      description:
        'Everything up to this position of the log is in the file. Before an event that is held back, if there is one.',
    }),
    created_at: timeSchema,
    expires_at: timeSchema,
  })
  .meta({ id: 'ExportManifest' })

const manifestOf = (row: OperationRow): z.input<typeof manifestSchema> => ({
  operation_id: row.id as OperationId,
  resource: row.resource,
  format: row.format,
  filters: row.filters,
  row_count: Number(row.row_count),
  byte_count: Number(row.byte_count),
  sha256: row.sha256 ?? '',
  from_position: String(row.from_position),
  to_position: String(row.to_position),
  created_at: row.completed_at ?? row.created_at,
  expires_at: row.expires_at,
})

const readManifest = route({
  ...common,
  method: 'GET',
  path: '/exports/{id}/manifest',
  operationId: 'read_export_manifest',
  audited: 'path',
  summary: 'Read the manifest of an export: its contents and checksum',
  scope: 'exports:read',
  params: z.object({ id: idSchema('op') }),
  responses: {
    200: { description: 'The manifest.', schema: manifestSchema, headers: ['ETag'] },
    304: NOT_MODIFIED,
  },
  errors: ['precondition_invalid', 'export_expired'],
  handler: async call => {
    const { filters } = await finishedExport(call)
    const texts = await textsFor(call, [filters])
    const reply = await readOne({ ...call, query: undefined }, operationEntity, call.params.id, row =>
      manifestOf({ ...row, filters: withTexts(row.filters, texts) }),
    )
    if (reply.status === 200) await recordExportRead(call, 'read_export_manifest')
    return reply
  },
})

export const exportRoutes: readonly AnyRoute[] = [createExport, readManifest, readContent, deleteExport]
