import { READ_MODEL_FOLDERS, READ_MODEL_NAMES } from '../../../projections/index.ts'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { randomId } from '../../../src/lib/identifiers.ts'
import { recordAuditedDecision } from '../../../src/commands/recordAuditedDecision.ts'
import {
  acceptDifferences,
  cancelRebuild,
  newestRebuilds,
  type RebuildKind,
  rebuildById,
  requestRebuild,
} from '../../../src/feeds/rebuild/requests.ts'
import type { Database } from '../../../src/ports.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { findConnections, howToStart } from '../connections.ts'
import { operatorContext, withLedger } from '../operatorContext.ts'
import { print, printJson } from '../print.ts'
import { requestAndFollow } from './follow.ts'

/**
 * `projections rebuild`, `verify`, `rollback`, `follow` and `cancel`: requests that a process of the service executes.
 */

type Json = { readonly json: boolean }
type WaitOptions = Json & { readonly wait: boolean }
type RebuildOptions = WaitOptions & { readonly acceptDifferences: boolean; readonly reason?: string }

/** The tenant of the operators of the ledger, whose audit records these are. */
const OPERATORS = 'ledger'

export type OperatedDatabase = { readonly database: Database; readonly storeUrl: string }

export const withOperatedDatabase = async <T>(work: (operated: OperatedDatabase) => Promise<T>): Promise<T> => {
  const { config, addresses } = await findConnections()
  if (addresses.postgres === null || addresses.event_store === null) throw new StartupError(howToStart(config.dataDir))
  const database = openDatabase({ connectionString: addresses.postgres, applicationName: 'ledger-projections' })
  try {
    return await work({ database, storeUrl: addresses.event_store })
  } finally {
    await database.close()
  }
}

/** The audit record is written before the request, so that no change of tables is without one. */
const audit = (storeUrl: string, operation: string, resource: string): Promise<void> =>
  withLedger(storeUrl, ledger =>
    recordAuditedDecision(ledger, { type: 'GrantAccess', operation, resource }, operatorContext(OPERATORS)),
  )

/** doctor and the dead letters name a read model by its checkpoint, which is a name for these commands too. */
const NAME_OF_CHECKPOINT = new Map(Object.entries(READ_MODEL_FOLDERS).map(([name, checkpoint]) => [checkpoint, name]))

const checkedNames = (given: readonly string[]): readonly string[] => {
  const names = given.map(name => NAME_OF_CHECKPOINT.get(name) ?? name)
  const unknown = names.filter(name => !READ_MODEL_NAMES.includes(name))
  if (unknown.length > 0)
    throw new StartupError(`There is no read model ${unknown.join(', ')}. There are ${READ_MODEL_NAMES.join(', ')}.`)
  return [...new Set(names)]
}

const OPERATIONS = {
  rebuild: 'rebuild_projection',
  verify: 'verify_projection',
  rollback: 'roll_back_projection',
} as const

const request = async (
  { database, storeUrl }: OperatedDatabase,
  kind: RebuildKind,
  projection: string,
): Promise<string> => {
  await audit(storeUrl, OPERATIONS[kind], projection)
  const id = randomId('op', realWorld())
  const requested_by = operatorContext(OPERATORS).subject
  const requested = await database.transaction(sql => requestRebuild(sql, { id, kind, projection, requested_by }))
  if (requested.ok) return id
  if (requested.code === 'nothing_kept')
    throw new StartupError(`No earlier tables of ${projection} are kept: it has not been rebuilt.`)
  const command = `npm run -s ledger -- projections follow ${requested.id}`
  throw new StartupError(`${projection} is being rebuilt already. To follow it: ${command}`)
}

/** The refused rebuild of the read model, whose tables are switched in spite of its difference. */
const accept = async (
  { database, storeUrl }: OperatedDatabase,
  projection: string,
  reason: string,
): Promise<string> => {
  const newest = (await newestRebuilds(database.sql)).find(row => row.projection === projection)
  if (newest?.state !== 'refused')
    throw new StartupError(`No rebuild of ${projection} was refused. Rebuild it without --accept-differences first.`)
  await audit(storeUrl, 'accept_projection_differences', newest.id)
  if (!(await acceptDifferences(database.sql, newest.id, reason)))
    throw new StartupError(`The rebuild ${newest.id} is no longer refused.`)
  return newest.id
}

type Requests = readonly (() => Promise<string>)[]

const execute = async (database: Database, requests: Requests, { wait, json }: WaitOptions): Promise<void> => {
  if (wait) return requestAndFollow(database, requests, json)
  const ids: string[] = []
  for (const one of requests) ids.push(await one())
  if (json) printJson({ ids })
  else print(`Requested: ${ids.join(' ')}. To follow: npm run -s ledger -- projections follow ${ids.join(' ')}`)
}

export const rebuild = (names: readonly string[], options: RebuildOptions): Promise<void> => {
  const { acceptDifferences: accepts, reason } = options
  if (accepts && (reason ?? '').trim() === '') throw new StartupError('A reason is required: --reason.')
  const projections = checkedNames(names)
  return withOperatedDatabase(operated =>
    execute(
      operated.database,
      projections.map(
        name => () => (accepts ? accept(operated, name, reason ?? '') : request(operated, 'rebuild', name)),
      ),
      options,
    ),
  )
}

/** All read models where none is named. */
export const verify = (names: readonly string[], options: WaitOptions): Promise<void> => {
  const projections = checkedNames(names.length === 0 ? READ_MODEL_NAMES : names)
  return withOperatedDatabase(operated =>
    execute(
      operated.database,
      projections.map(name => () => request(operated, 'verify', name)),
      options,
    ),
  )
}

export const rollback = (name: string, options: WaitOptions): Promise<void> => {
  const [projection = name] = checkedNames([name])
  return withOperatedDatabase(operated =>
    execute(operated.database, [() => request(operated, 'rollback', projection)], options),
  )
}

export const followAll = (ids: readonly string[], { json }: Json): Promise<void> =>
  withOperatedDatabase(({ database }) =>
    requestAndFollow(
      database,
      ids.map(id => async () => id),
      json,
    ),
  )

export const cancel = (ids: readonly string[], { json }: Json): Promise<void> =>
  withOperatedDatabase(async ({ database, storeUrl }) => {
    const cancelled: string[] = []
    for (const id of ids) {
      if ((await rebuildById(database.sql, id)) === undefined) throw new StartupError(`There is no rebuild ${id}.`)
      await audit(storeUrl, 'cancel_projection_rebuild', id)
      if (await cancelRebuild(database.sql, id)) cancelled.push(id)
    }
    if (json) printJson({ cancelled })
    else print(cancelled.length === 0 ? 'None was running.' : `Cancelled: ${cancelled.join(' ')}`)
  })
