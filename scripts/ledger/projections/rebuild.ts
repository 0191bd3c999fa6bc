import { READ_MODEL_FOLDERS, READ_MODEL_NAMES } from '../../../projections/index.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { randomId } from '../../../src/lib/identifiers.ts'
import {
  acceptDifferences,
  cancelRebuild,
  newestRebuilds,
  type RebuildKind,
  rebuildById,
  requestRebuild,
} from '../../../src/feeds/rebuild/requests.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { operatorContext, recordAccess } from '../operatorContext.ts'
import { print, printJson } from '../print.ts'
import { type Stores, withStores } from '../stores.ts'
import { requestAndFollow } from './follow.ts'

type Json = { readonly json: boolean }
type WaitOptions = Json & { readonly wait: boolean }
type RebuildOptions = WaitOptions & { readonly acceptDifferences: boolean; readonly reason?: string }

/** The tenant of the operators of the ledger, whose audit records these are. */
const OPERATORS = 'ledger'

/** The audit record is written before the request, so that no change of tables is without one. */
const audit = ({ ledger }: Stores, operation: string, resource: string): Promise<void> =>
  recordAccess(ledger, { operation, tenant: OPERATORS, resource })

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

const request = async (stores: Stores, kind: RebuildKind, projection: string): Promise<string> => {
  await audit(stores, OPERATIONS[kind], projection)
  const id = randomId('op', realWorld())
  const requested_by = operatorContext(OPERATORS).subject
  const requested = await stores.database.transaction(sql =>
    requestRebuild(sql, { id, kind, projection, requested_by }),
  )
  if (requested.ok) return id
  if (requested.code === 'nothing_kept')
    throw new StartupError(`No earlier tables of ${projection} are kept: it has not been rebuilt.`)
  const command = `npm run -s ledger -- projections follow ${requested.id}`
  throw new StartupError(`${projection} is being rebuilt already. To follow it: ${command}`)
}

/** The refused rebuild of the read model, whose tables are switched in spite of its difference. */
const accept = async (stores: Stores, projection: string, reason: string): Promise<string> => {
  const { sql } = stores.database
  const newest = (await newestRebuilds(sql)).find(row => row.projection === projection)
  if (newest?.state !== 'refused')
    throw new StartupError(`No rebuild of ${projection} was refused. Rebuild it without --accept-differences first.`)
  await audit(stores, 'accept_projection_differences', newest.id)
  if (!(await acceptDifferences(sql, newest.id, reason)))
    throw new StartupError(`The rebuild ${newest.id} is no longer refused.`)
  return newest.id
}

type Request = (stores: Stores) => Promise<string>

const execute = (requests: readonly Request[], { wait, json }: WaitOptions): Promise<void> =>
  withStores('projections', async stores => {
    const begun = requests.map(request => () => request(stores))
    if (wait) return requestAndFollow(stores.database, begun, json)
    const ids: string[] = []
    for (const begin of begun) ids.push(await begin())
    if (json) printJson({ ids })
    else print(`Requested: ${ids.join(' ')}. To follow: npm run -s ledger -- projections follow ${ids.join(' ')}`)
  })

export const rebuild = async (names: readonly string[], options: RebuildOptions): Promise<void> => {
  const { acceptDifferences: accepts, reason = '' } = options
  if (accepts && reason.trim() === '') throw new StartupError('A reason is required: --reason.')
  const requestOf = (name: string): Request =>
    accepts ? stores => accept(stores, name, reason) : stores => request(stores, 'rebuild', name)
  await execute(checkedNames(names).map(requestOf), options)
}

/** All read models where none is named. */
export const verify = async (names: readonly string[], options: WaitOptions): Promise<void> => {
  const projections = checkedNames(names.length === 0 ? READ_MODEL_NAMES : names)
  const requestOf =
    (name: string): Request =>
    stores =>
      request(stores, 'verify', name)
  await execute(projections.map(requestOf), options)
}

export const rollback = async (name: string, options: WaitOptions): Promise<void> => {
  const [projection = name] = checkedNames([name])
  await execute([stores => request(stores, 'rollback', projection)], options)
}

export const followAll = (ids: readonly string[], { json }: Json): Promise<void> =>
  execute(
    ids.map(id => async () => id),
    { json, wait: true },
  )

export const cancel = (ids: readonly string[], { json }: Json): Promise<void> =>
  withStores('projections', async stores => {
    const { sql } = stores.database
    const cancelled: string[] = []
    for (const id of ids) {
      if ((await rebuildById(sql, id)) === undefined) throw new StartupError(`There is no rebuild ${id}.`)
      await audit(stores, 'cancel_projection_rebuild', id)
      if (await cancelRebuild(sql, id)) cancelled.push(id)
    }
    if (json) printJson({ cancelled })
    else print(cancelled.length === 0 ? 'None was running.' : `Cancelled: ${cancelled.join(' ')}`)
  })
