import { z } from 'zod'
import type { OperationRow } from '../../../projections/operations/projection.ts'
import { operationPage } from '../../../projections/operations/queries.ts'
import { resourceView } from '../../../projections/projection.ts'
import type { PaymentRow } from '../../../projections/payments/projection.ts'
import { idSchema, type OperationId, type PaymentId, withPrefix } from '../../../streams/ids.ts'
import { operationEntity, paymentEntity } from '../../commands/entities.ts'
import { type Progress, progressOf } from '../../processes/exports/exportFiles.ts'
import { handle } from '../../commands/commandHandler.ts'
import { unlessUnavailable } from '../../ports.ts'
import { readPage } from './collection.ts'
import { etagOf } from '../request/entityTags.ts'
import { insufficientScope, isErrorCode, Problem } from '../problems/problemCatalogue.ts'
import { documentOf } from '../problems/problemDocument.ts'
import { executed, readOne, replyWithTag, visible, visibleRow } from './commonReplies.ts'
import { replayView } from './subscriptions/replayView.ts'
import { type AnyRoute, type Reply, route } from '../route.ts'
import type { AnyCall } from '../services.ts'
import { changedResource, emptyBody, resourceById } from './commonSchemas.ts'
import { createdQuery, pageQuery, listOf } from './paging.ts'
import { operationSchema, type OperationView } from './operationSchema.ts'
import { tickOf } from './subscriptions/subscriptionSchemas.ts'

const errorOf = (code: string, instance: string, correlationId: string) =>
  isErrorCode(code) ? { ...documentOf(new Problem(code), { instance, correlationId }) } : { code }

/** The operation of a payment: a view of the payment's stream, without a record of its own. */
export const renderPaymentOperation = (row: PaymentRow): OperationView => {
  const id = withPrefix('op', row.id as PaymentId)
  const isDecided = row.revision > 0n
  const failed = row.failure_code !== null
  return {
    id,
    kind: 'create_payment',
    state: failed ? 'failed' : isDecided ? 'succeeded' : 'pending',
    ...resourceView(row),
    progress: { done: isDecided ? 1 : 0, total: 1, unit: 'payments', rate: null, eta_seconds: null },
    result: isDecided ? { href: `/payments/${row.id}` } : null,
    error: row.failure_code === null ? null : errorOf(row.failure_code, `/operations/${id}`, ''),
    expires_at: null,
  }
}

type ShownProgress = Omit<Progress, 'attempt'>

const progressView = ({ row_count }: OperationRow, shown: ShownProgress | undefined): OperationView['progress'] => {
  const unit = 'rows'
  if (row_count !== null) return { done: Number(row_count), total: Number(row_count), unit, rate: null, eta_seconds: 0 }
  if (shown === undefined) return { done: 0, total: null, unit, rate: null, eta_seconds: null }
  const { done, total, rate, eta_seconds } = shown
  return {
    done: Number(done),
    total: Number(total),
    unit,
    rate: Number(rate),
    eta_seconds: eta_seconds === null ? null : Number(eta_seconds),
  }
}

export const renderOperation = (row: OperationRow, shown?: ShownProgress): OperationView => ({
  id: row.id as OperationId,
  kind: row.kind,
  state: row.state,
  ...resourceView(row),
  progress: progressView(row, shown),
  result: row.state === 'succeeded' ? { href: `/exports/${row.id}/content` } : null,
  error: row.error_code === null ? null : errorOf(row.error_code, `/operations/${row.id}`, row.correlation_id),
  expires_at: row.expires_at,
})

/** The progress of the current attempt. Undefined without the database: the operation is shown without progress. */
const progressFor = async ({ database }: AnyCall, row: OperationRow) => {
  if (row.attempt === 0 || row.row_count !== null) return undefined
  const progress = (await unlessUnavailable(progressOf(database.sql, [row.id])))?.get(row.id)
  return progress?.attempt === row.attempt ? progress : undefined
}

/** The operation and its tag. Progress changes without an event, so it is a part of the tag. */
const representationOf = async (call: AnyCall, row: OperationRow) => {
  const progress = await progressFor(call, row)
  const etag = etagOf(row.revision, call.apiVersion, { tick: progress?.tick ?? 0 })
  return { body: renderOperation(row, progress), etag }
}

const byId = z.object({ id: idSchema('op') })
const PATH = '/operations'
const common = { tag: 'Operations' } as const

const readOperation = route({
  ...common,
  method: 'GET',
  path: `${PATH}/{id}`,
  operationId: 'read_operation',
  summary: 'Read an operation: an export, a payment that was not decided at once, or a replay',
  scope: 'exports:read',
  // A caller who waits for a payment or a replay has its scope, and does not need the others.
  orScopes: ['payments:read', 'events:subscribe'],
  params: byId,
  ...resourceById(operationSchema, 'The operation.'),
  handler: async (call): Promise<Reply> => {
    const { ledger, params, principal } = call
    const row = (await ledger.aggregates.loadOwn(operationEntity, params.id, principal.tenant))?.row
    if (row === undefined) return readUnrecorded(call, params.id)
    const { body, etag } = await representationOf(call, visible(call, row))
    if (!principal.scopes.has('exports:read'))
      throw insufficientScope(['exports:read'], 'The operation of an export requires the scope exports:read.')
    return replyWithTag(call, etag, body)
  },
})

/** An operation without a record of its own: of a payment or a replay. Its id determines the stream. */
const readUnrecorded = async (call: AnyCall, id: OperationId): Promise<Reply> => {
  const { ledger, principal } = call
  const paymentId = withPrefix('pay', id)
  if ((await ledger.aggregates.loadOwn(paymentEntity, paymentId, principal.tenant)) === undefined) {
    const replay = await replayView(call, id)
    if (!principal.scopes.has('events:subscribe'))
      throw insufficientScope(['events:subscribe'], 'The operation of a replay requires the scope events:subscribe.')
    return replyWithTag(call, etagOf(BigInt(replay.version), call.apiVersion, { tick: tickOf(replay) }), replay)
  }
  const reply = await readOne({ ...call, query: undefined }, paymentEntity, paymentId, renderPaymentOperation)
  if (!principal.scopes.has('payments:read') && !principal.scopes.has('exports:read'))
    throw insufficientScope(['payments:read'], 'The operation of a payment requires the scope payments:read.')
  return reply
}

const listOperations = route({
  ...common,
  method: 'GET',
  path: PATH,
  operationId: 'list_operations',
  summary: 'List the operations of exports, newest first',
  scope: 'exports:read',
  query: z.object({
    ...pageQuery,
    ...createdQuery,
    state: operationSchema.shape.state.optional(),
    kind: z.enum(['export']).optional(),
  }),
  ...listOf(operationSchema),
  handler: call =>
    readPage(call, {
      name: 'operations_v1',
      page: operationPage,
      render: ({ tick, done, total, rate, eta_seconds, ...row }) =>
        tick === null || done === null || total === null || rate === null
          ? renderOperation(row)
          : renderOperation(row, { tick, done, total, rate, eta_seconds }),
    }),
})

const cancelOperation = route({
  ...common,
  method: 'POST',
  path: `${PATH}/{id}:cancel`,
  operationId: 'cancel_operation',
  endsWork: true,
  summary: 'Cancel an export; one that has ended is returned unchanged',
  scope: 'exports:write',
  params: byId,
  body: emptyBody,
  responses: { 200: changedResource(operationSchema, 'The operation.') },
  handler: async call => {
    const { ledger, params, context } = call
    await visibleRow(call, operationEntity, params.id)
    const command = { type: 'CancelOperation' as const }
    const { row, position } = executed(await handle(ledger, operationEntity, params.id, { command, context }))
    const { body, etag } = await representationOf(call, row)
    return { status: 200, body, headers: { ETag: etag, 'Ledger-Position': position.toString() } }
  },
})

export const operationRoutes: readonly AnyRoute[] = [listOperations, readOperation, cancelOperation]
