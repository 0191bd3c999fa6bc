import { z } from 'zod'
import type { OperationRow } from '../../../projections/operations/projection.ts'
import { idSchema, type OperationId } from '../../../streams/ids.ts'
import type { IdempotencyRecord } from '../../../streams/idempotencyRecord.ts'
import { EXPORT_FORMATS, EXPORT_RESOURCES } from '../../../streams/operation/index.ts'
import { inKeyTurn } from '../../commands/idempotencyKeyTurns.ts'
import { create, replay } from '../../commands/idempotentCreation.ts'
import { type KindOf, operationEntity } from '../../commands/entities.ts'
import { type ExportLimits, takeExportSlot } from '../../commands/exportQuota.ts'
import { withTexts } from '../../commands/personalTexts.ts'
import { idOfKey, randomId } from '../../commands/identifiers.ts'
import { type JsonObject, Unavailable } from '../../ports.ts'
import { SCOPE_OF } from '../../identity/resourceScopes.ts'
import { finishedExport, readContent, recordExportRead } from './exportContent.ts'
import { deleteExport } from './exportDeletion.ts'
import { idempotencyRecordIfKeyed } from '../request/idempotencyKey.ts'
import { invoiceFilters } from './invoices.ts'
import { renderOperation } from './operations.ts'
import { operationSchema } from './operationSchema.ts'
import { orderFilters } from './orderSchemas.ts'
import { definedOnly } from './paging.ts'
import { postingFilters } from './books/bookSchemas.ts'
import { paymentFilters } from './payments.ts'
import { Problem } from '../response/problemCatalogue.ts'
import { replyToCreation, readOne, textsFor } from './commonReplies.ts'
import { exportFilters } from './paymentReferences.ts'
import { type AnyRoute, type Call, type Reply, route } from '../route.ts'
import { metadataSchema, timeSchema, NOT_MODIFIED } from './commonSchemas.ts'

/** The endpoints that create exports and read their manifests. */

const KEPT_DAYS = 30
const DAY_MS = 24 * 60 * 60 * 1000

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

const common = { tag: 'Exports', rateClass: 'default' } as const

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
      headers: ['Location', 'ETag', 'Ledger-Position', 'Idempotent-Replayed'],
    },
  },
  errors: ['quota_exceeded'],
  handler: async call => {
    call.requireScopes([SCOPE_OF[call.body.resource]])
    return acceptedReply(call, await createOnce(call))
  },
})

type AnyCall = Call<unknown, unknown, unknown>
type Created = Awaited<ReturnType<typeof create<KindOf<typeof operationEntity>>>>

type CreateCall = Call<unknown, unknown, z.output<typeof newExport>>

/** Creates the export, or finds the one that the same key created. */
const createOnce = async (call: CreateCall): Promise<Created> => {
  const { ledger, idempotency } = call
  const { resource, format, metadata } = call.body
  const id = idempotency ? idOfKey('op', idempotency) : randomId('op', ledger.world)
  const { compared, found } = await exportFilters(call, definedOnly(call.body.filters ?? {}))
  const asked = { resource, format, filters: compared, metadata } satisfies JsonObject
  const record = idempotencyRecordIfKeyed(call, asked)
  return inKeyTurn(ledger, id, async () => {
    const ready = async () => {
      await takeSlot(call, id)
      return found()
    }
    const prepared = await orReplay(call, { id, record }, ready)
    return 'answer' in prepared ? prepared.answer : requestExport(call, { id, filters: prepared.value, record })
  })
}

type Requested = {
  readonly id: OperationId
  readonly filters: Readonly<Record<string, string>>
  readonly record: IdempotencyRecord | null
}

const requestExport = ({ ledger, context, body }: CreateCall, { id, filters, record }: Requested): Promise<Created> => {
  const { resource, format, metadata } = body
  const expires_at = new Date(ledger.world.now() + KEPT_DAYS * DAY_MS).toISOString()
  const terms = { resource, format, filters, metadata, expires_at }
  const command = { type: 'RequestExport' as const, ...terms, claim: record }
  return create(ledger, operationEntity, id, { command, context, idempotencyRecord: record })
}

const acceptedReply = async (call: AnyCall, created: Created): Promise<Reply> => ({
  ...(await replyToCreation(call, created, '/operations', renderOperation)),
  status: 202,
})

const replayed = ({ ledger }: AnyCall, id: OperationId, record: IdempotencyRecord): Promise<Created | undefined> =>
  replay(ledger, operationEntity, id, record)

const refusalOf = ({ callerMax, tenantMax, tenantMaxBytes }: ExportLimits) => ({
  caller: `You may have ${callerMax} unfinished exports at once. Retry when one of them has ended.`,
  tenant: `Your tenant may have ${tenantMax} unfinished exports at once. Retry when one of them has ended.`,
  bytes:
    `The export files of your tenant have reached their limit of ${tenantMaxBytes} bytes. ` +
    'Delete files that you no longer need (DELETE /exports/{id}), or wait until some expire.',
})

/** Takes the place of this export. Throws Problem: 429; Unavailable. */
const takeSlot = async (
  { database, principal, concurrencyLimits, exportBytesPerTenant, ledger }: AnyCall,
  id: OperationId,
): Promise<void> => {
  const { exports: callerMax, tenant_exports: tenantMax } = concurrencyLimits.settings
  const keptSince = new Date(ledger.world.now() - KEPT_DAYS * DAY_MS).toISOString()
  const limits = { callerMax, tenantMax, tenantMaxBytes: exportBytesPerTenant, keptSince }
  const reserved = await takeExportSlot(database, principal, id, limits)
  if (reserved !== 'taken') throw new Problem('quota_exceeded', { detail: refusalOf(limits)[reserved] })
}

/**
 * The value of `work`, which needs Postgres. While Postgres does not answer, a key that was used before gets its
 * answer: after a 503, which promises no effect, the caller would take another key, and there would be two exports.
 * Throws as `work` does.
 */
const orReplay = async <T>(
  call: AnyCall,
  { id, record }: Pick<Requested, 'id' | 'record'>,
  work: () => Promise<T>,
): Promise<{ readonly value: T } | { readonly answer: Created }> => {
  try {
    return { value: await work() }
  } catch (error) {
    const answer = error instanceof Unavailable && record ? await replayed(call, id, record) : undefined
    if (answer === undefined) throw error
    return { answer }
  }
}

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
