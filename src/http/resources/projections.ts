import { z } from 'zod'
import { READ_MODEL_NAMES } from '../../../projections/index.ts'
import { randomId } from '../../lib/identifiers.ts'
import { recordAuditedDecision } from '../../commands/recordAuditedDecision.ts'
import { checkpointPositions } from '../../feeds/checkpoints.ts'
import { FOLLOWED_READ_MODELS, lagsOf } from '../../feeds/lag.ts'
import {
  acceptDifferences,
  cancelRebuild,
  newestRebuilds,
  previousProjections,
  rebuildById,
  type RebuildKind,
  type RebuildRow,
  requestRebuild,
} from '../../feeds/rebuild/requests.ts'
import { permitOperator } from '../access/operators.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { type AnyRoute, type Reply, route } from '../route.ts'
import type { AnyCall } from '../services.ts'
import { emptyBody } from './commonSchemas.ts'
import { projectionSchema, rebuildRequest, rebuildSchema, rebuildView } from './projectionSchemas.ts'

/** The endpoints of read models: their lag and their rebuilds, for the operators of the installation. */

const PARKED =
  'select delivery, count(*) as waiting from parked_facts where delivery = any($1::text[]) group by delivery'

const parkedOf = async ({ database: { sql } }: AnyCall): Promise<ReadonlyMap<string, bigint>> => {
  const rows = await sql<{ delivery: string; waiting: bigint }>(PARKED, [FOLLOWED_READ_MODELS.map(({ name }) => name)])
  return new Map(rows.map(({ delivery, waiting }) => [delivery, waiting]))
}

const common = { tag: 'Projections', scope: 'projections:operate' } as const
const PATH = '/projections'

const listProjections = route({
  ...common,
  method: 'GET',
  path: PATH,
  operationId: 'list_projections',
  summary: 'List the read models of the installation, how far they are behind the log, and their newest rebuilds',
  description: 'For callers of the tenant of the operators (setting OPERATORS_TENANT).',
  responses: {
    200: {
      description: 'All read models.',
      schema: z.object({ items: z.array(projectionSchema) }).meta({ id: 'ProjectionList' }),
    },
  },
  errors: ['policy_denied'],
  handler: async call => {
    permitOperator(call)
    const { database, ledger } = call
    const positions = await checkpointPositions(database.sql)
    const followed = FOLLOWED_READ_MODELS.map(of => ({ ...of, position: positions.get(of.name) }))
    const lags = await lagsOf(ledger.store, followed, ledger.world.now())
    const rebuilds = new Map((await newestRebuilds(database.sql)).map(row => [row.projection, row]))
    const previous = await previousProjections(database.sql)
    const parked = await parkedOf(call)
    const items = followed.map(({ projection, name, position }) => {
      const row = rebuilds.get(projection)
      return {
        name: projection,
        position: position?.toString() ?? null,
        lag: lags.get(name) ?? { events: 0, seconds: 0 },
        parked_events: Number(parked.get(name) ?? 0n),
        previous_position: previous.get(projection)?.toString() ?? null,
        rebuild: row === undefined ? null : rebuildView(row),
      }
    })
    return { status: 200, body: { items } }
  },
})

const byName = z.object({ name: z.enum(READ_MODEL_NAMES as [string, ...string[]]) })
type Named = AnyCall & { readonly params: z.output<typeof byName> }

const stateConflict = (detail: string): Problem => new Problem('projection_state_conflict', { detail })

const replyWith = async ({ database }: AnyCall, id: string, status: number): Promise<Reply> => {
  const row = await rebuildById(database.sql, id)
  if (row === undefined) throw new Error(`${id} was requested and is not there.`)
  return { status, body: rebuildView(row) }
}

const newestOf = async ({ database, params }: Named): Promise<RebuildRow | undefined> =>
  (await newestRebuilds(database.sql)).find(({ projection }) => projection === params.name)

/** The audit record is written before the change, so none is without one. */
const audit = ({ ledger, context, params }: Named, operation: string): Promise<void> =>
  recordAuditedDecision(ledger, { type: 'GrantAccess', operation, resource: params.name }, context)

const request = async (call: Named, kind: RebuildKind, operation: string): Promise<Reply> => {
  permitOperator(call)
  const { database, ledger, params, principal } = call
  await audit(call, operation)
  const id = randomId('op', ledger.world)
  const rebuild = { id, kind, projection: params.name, requested_by: principal.subject }
  const requested = await database.transaction(sql => requestRebuild(sql, rebuild))
  if (requested.ok) return replyWith(call, id, 202)
  if (requested.code === 'nothing_kept') throw stateConflict(`No earlier tables of ${params.name} are kept.`)
  if (kind === 'verify') return replyWith(call, requested.id, 202)
  throw stateConflict(`${params.name} is being rebuilt already, by ${requested.id}.`)
}

const accept = async (call: Named, reason: string): Promise<Reply> => {
  permitOperator(call)
  const newest = await newestOf(call)
  if (newest?.state !== 'refused') throw stateConflict(`No rebuild of ${call.params.name} was refused.`)
  await audit(call, 'accept_projection_differences')
  if (!(await acceptDifferences(call.database.sql, newest.id, reason)))
    throw stateConflict(`The rebuild ${newest.id} is no longer refused.`)
  return replyWith(call, newest.id, 202)
}

const action = {
  ...common,
  method: 'POST',
  params: byName,
  audited: 'path',
  responses: { 202: { description: 'Accepted. GET /projections shows the progress.', schema: rebuildSchema } },
  errors: ['policy_denied', 'projection_state_conflict'],
} as const

const rebuildProjection = route({
  ...action,
  path: `${PATH}/{name}:rebuild`,
  operationId: 'rebuild_projection',
  summary: 'Build new tables from the log beside the live ones, compare them, and switch if they are equal',
  body: rebuildRequest,
  handler: call =>
    call.body.accept_differences
      ? accept(call, call.body.reason ?? '')
      : request(call, 'rebuild', 'rebuild_projection'),
})

const verifyProjection = route({
  ...action,
  path: `${PATH}/{name}:verify`,
  operationId: 'verify_projection',
  summary: 'Compare the tables of a read model with new ones from the log, and change nothing',
  description: 'A rebuild that is already running also compares, and is returned instead.',
  body: emptyBody,
  errors: ['policy_denied'],
  handler: call => request(call, 'verify', 'verify_projection'),
})

const rollBackProjection = route({
  ...action,
  path: `${PATH}/{name}:rollback`,
  operationId: 'roll_back_projection',
  summary: 'Put the tables before the last rebuild back, with the events since',
  body: emptyBody,
  handler: call => request(call, 'rollback', 'roll_back_projection'),
})

const cancelProjectionRebuild = route({
  ...action,
  path: `${PATH}/{name}:cancel`,
  operationId: 'cancel_projection_rebuild',
  summary: 'End the rebuild of a read model; the live tables stay',
  body: emptyBody,
  responses: { 200: { description: 'The newest rebuild, as it is then.', schema: rebuildSchema } },
  handler: async call => {
    permitOperator(call)
    const newest = await newestOf(call)
    if (newest === undefined) throw stateConflict(`${call.params.name} was never rebuilt.`)
    await audit(call, 'cancel_projection_rebuild')
    await cancelRebuild(call.database.sql, newest.id)
    return replyWith(call, newest.id, 200)
  },
})

export const projectionRoutes: readonly AnyRoute[] = [
  listProjections,
  rebuildProjection,
  verifyProjection,
  rollBackProjection,
  cancelProjectionRebuild,
]
