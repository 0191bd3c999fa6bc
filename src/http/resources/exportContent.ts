import { z } from 'zod'
import type { OperationRow } from '../../../projections/operations/projection.ts'
import { idSchema, type OperationId } from '../../../streams/ids.ts'
import type { ExportFormat } from '../../../streams/operation/index.ts'
import { recordAuditedDecision } from '../../commands/recordAuditedDecision.ts'
import { operationEntity } from '../../commands/entities.ts'
import { mayHaveErased } from '../../processes/exports/exportErasures.ts'
import { bytesOf, isComplete } from '../../processes/exports/exportFiles.ts'
import { SCOPE_OF } from '../../identity/resourceScopes.ts'
import { isNotModified } from '../request/entityTags.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { type ByteRange, rangeOf } from '../request/ranges.ts'
import { hasErased } from '../../personalTexts/personalTexts.ts'
import { PRIVATE_CACHING, textsFor, visibleRow } from './commonReplies.ts'
import { NOT_MODIFIED } from './commonSchemas.ts'
import { route, type Streamed } from '../route.ts'
import type { Call } from '../services.ts'

const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv',
  jsonl: 'application/jsonl',
  parquet: 'application/vnd.apache.parquet',
}
const PARAMETERS: Readonly<Record<ExportFormat, string>> = {
  csv: '; charset=utf-8; header=present',
  jsonl: '; charset=utf-8',
  parquet: '',
}
const offers = Object.values(CONTENT_TYPES)

type ExportCall = Call<{ id: OperationId }, unknown, unknown>

/**
 * The row of an export that has a file. Throws Problem: 403 without the scope of its resource; 410 if it has expired,
 * is lost, or has a text that was erased; 404 in any other state.
 */
export const finishedExport = async (call: ExportCall): Promise<OperationRow> => {
  const { ledger, params, database } = call
  const row = await visibleRow(call, operationEntity, params.id)
  call.requireScopes([SCOPE_OF[row.resource]])
  // Checked by time too, since the worker records the expiry a little later.
  if (row.state === 'expired' || Date.parse(row.expires_at) <= ledger.world.now()) throw new Problem('export_expired')
  if (row.state === 'succeeded') {
    const { id, attempt, tenant_id: tenant, resource, filters, byte_count } = row
    const isErased = hasErased(filters, await textsFor(call, [filters]))
    if (isErased || (await mayHaveErased(database.sql, { id, attempt, tenant, resource })))
      throw new Problem('export_expired')
    if (!(await isComplete(database.sql, row, byte_count ?? 0n))) throw new Problem('export_expired')
    return row
  }
  throw new Problem('resource_not_found', { detail: `The export has no file: it is ${row.state}.` })
}

/** Records the access before the first byte of the response is sent. */
export const recordExportRead = (
  { ledger, params, context }: ExportCall,
  operation: 'read_export' | 'read_export_manifest',
): Promise<void> => recordAuditedDecision(ledger, { type: 'GrantAccess', operation, resource: params.id }, context)

const RECHECK_EVERY_MS = 5_000

/** Checks the right to the file again, every few seconds at most. Throws Problem: the caller has it no more. */
const createRecheck = ({ recheck, ledger: { world } }: ExportCall): (() => Promise<void>) => {
  let checkedAtMs = world.monotonicMs()
  return async () => {
    if (world.monotonicMs() - checkedAtMs < RECHECK_EVERY_MS) return
    checkedAtMs = world.monotonicMs()
    await recheck()
  }
}

/** The bytes of the range. Throws if the file or the right to it disappears: the response is cut off. */
const contentOf =
  (call: ExportCall, { id, attempt }: OperationRow, { first, end }: ByteRange): Streamed =>
  async (send, gone) => {
    const recheck = createRecheck(call)
    let sent = 0n
    for await (const piece of bytesOf(call.bulk.sql, { id, attempt }, { first, end })) {
      if (gone.aborted) return
      await recheck()
      await send(piece)
      sent += BigInt(piece.length)
    }
    if (sent !== end - first) throw new Error(`${sent} bytes of ${id} were found instead of ${end - first}.`)
  }

/** no-transform, since ranges and digest refer to the stored bytes. */
const CACHE_CONTROL = `${PRIVATE_CACHING['Cache-Control']}, no-transform`

const headersOf = ({ id, format, resource, sha256 }: OperationRow, { first, end }: ByteRange) => ({
  'Content-Length': String(end - first),
  'Content-Disposition': `attachment; filename="${resource}-${id}.${format}"`,
  'Repr-Digest': `sha-256=:${Buffer.from(sha256 ?? '', 'hex').toString('base64')}:`,
})

export const readContent = route({
  tag: 'Exports',
  method: 'GET',
  path: '/exports/{id}/content',
  operationId: 'read_export',
  audited: 'path',
  summary: 'The file',
  description:
    'Whole, or the one range of bytes that Range names; several ranges are answered with the whole file. In a csv file ' +
    'a text that a spreadsheet would calculate, or that begins with an apostrophe, has one apostrophe before it: remove ' +
    'one from each text that begins with one, and it is as it was. A caller may download few files at once, 4 by ' +
    'default, and all callers of a tenant together 8.',
  scope: 'exports:read',
  params: z.object({ id: idSchema('op') }),
  offers,
  responses: {
    200: {
      description: 'The file in the format of the export.',
      schema: z.string().meta({ description: 'The bytes of the file.' }),
      contentType: offers,
      headers: ['ETag', 'Accept-Ranges', 'Content-Disposition', 'Content-Length', 'Repr-Digest'],
    },
    206: {
      description: 'The requested range of the file.',
      schema: z.string().meta({ description: 'The bytes of the file.' }),
      contentType: offers,
      headers: ['ETag', 'Accept-Ranges', 'Content-Range', 'Content-Disposition', 'Content-Length', 'Repr-Digest'],
    },
    304: NOT_MODIFIED,
  },
  errors: ['precondition_invalid', 'export_expired', 'range_not_satisfiable'],
  handler: async call => {
    const row = await finishedExport(call)
    const { format, sha256, byte_count } = row
    const etag = `"${sha256}"`
    const headers = { ...PRIVATE_CACHING, 'Cache-Control': CACHE_CONTROL, ETag: etag, 'Accept-Ranges': 'bytes' }
    if (isNotModified(call.ifNoneMatch, etag)) return { status: 304, headers }
    const length = byte_count ?? 0n
    const requested = rangeOf(call, { etag, length })
    if (requested === 'not satisfiable')
      throw new Problem('range_not_satisfiable', {
        detail: `The file has ${length} bytes.`,
        headers: { 'Accept-Ranges': 'bytes', 'Content-Range': `bytes */${length}` },
      })
    const range = requested ?? { first: 0n, end: length }
    call.onClose(await call.concurrencyLimits.take('downloads', call.principal))
    await recordExportRead(call, 'read_export')
    return {
      status: requested ? 206 : 200,
      stream: contentOf(call, row, range),
      contentType: `${CONTENT_TYPES[format]}${PARAMETERS[format]}`,
      headers: {
        ...headers,
        ...headersOf(row, range),
        ...(requested ? { 'Content-Range': `bytes ${range.first}-${range.end - 1n}/${length}` } : {}),
      },
    }
  },
})
