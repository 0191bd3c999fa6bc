import { type Logger, Unavailable } from '../../ports.ts'
import { EpochSuperseded } from '../checkpoints.ts'
import { reasonOf } from '../deadLetters.ts'
import type { ReadModel } from '../readModel.ts'
import { executeRebuild, runOf } from './rebuild.ts'
import { liveSchema, type Rebuildable, rebuildableOf } from './rebuildable.ts'
import {
  type OpenRebuild,
  RebuildEnded,
  type RebuildDependencies,
  releaseTables,
  takeOver,
} from './rebuildTransactions.ts'
import { hasRebuildWork, nextRebuild, type RebuildRow, unreleasedRebuild } from './requests.ts'

export type RebuildLoop = RebuildDependencies & {
  readonly logger: Logger
  readonly models: readonly ReadModel[]
}

const REQUESTS_POLL_MS = 2_000
const UNAVAILABLE_RETRY_MS = 1_000

/** A process that was replaced meanwhile changes nothing. */
const fail = async (
  { database, logger }: RebuildLoop,
  { id, projection }: RebuildRow,
  epoch: bigint,
  error: unknown,
): Promise<void> => {
  logger.error({ id, projection, error }, 'rebuild failed')
  await database.sql(
    `update projection_rebuilds set state = 'failed', error = $2, ended_at = now()
      where id = $1 and epoch <= $3 and state in ('pending', 'running')`,
    [id, reasonOf(error), epoch],
  )
}

const open = async (
  loop: RebuildLoop,
  row: RebuildRow,
  { epoch, signal }: Pick<OpenRebuild, 'epoch' | 'signal'>,
): Promise<OpenRebuild> => {
  const rebuildable = await rebuildableOf(row.projection, loop.models)
  if (rebuildable === undefined) throw new Error(`This build has no read model ${row.projection}.`)
  return { row, rebuildable, epoch, live: await liveSchema(loop.database.sql), signal }
}

const execute = async (loop: RebuildLoop, row: RebuildRow, held: Pick<OpenRebuild, 'epoch' | 'signal'>) => {
  const { id, kind, projection } = row
  try {
    const rebuild = await open(loop, row, held)
    const position = await takeOver(loop, row, rebuild)
    loop.logger.info({ id, kind, projection, position }, 'rebuild started')
    await executeRebuild(runOf(loop, rebuild, position))
    loop.logger.info({ id, kind, projection }, 'rebuild finished')
  } catch (error) {
    // The run had to end, and the error may be the consequence.
    if (held.signal.aborted || error instanceof RebuildEnded) return
    if (error instanceof EpochSuperseded || error instanceof Unavailable) throw error
    await fail(loop, row, held.epoch, error)
  }
}

const release = async (loop: RebuildLoop, row: RebuildRow): Promise<void> => {
  const rebuildable: Rebuildable | undefined = await rebuildableOf(row.projection, loop.models)
  await releaseTables(loop, row, rebuildable?.tables ?? [])
}

/** One step: drops the tables of a rebuild that has ended, or executes the next one. Resolves to whether there was work. */
export const executeNext = async (loop: RebuildLoop, held: Pick<OpenRebuild, 'epoch' | 'signal'>): Promise<boolean> => {
  if (!(await hasRebuildWork(loop.database.sql))) return false
  const ended = await unreleasedRebuild(loop.database.sql)
  if (ended !== undefined) {
    await release(loop, ended)
    return true
  }
  const next = await nextRebuild(loop.database.sql)
  if (next !== undefined) await execute(loop, next, held)
  return next !== undefined
}

const executeAll = async (loop: RebuildLoop, held: Pick<OpenRebuild, 'epoch' | 'signal'>): Promise<void> => {
  while (!held.signal.aborted) {
    try {
      if (!(await executeNext(loop, held))) await loop.world.sleep(REQUESTS_POLL_MS, held.signal)
    } catch (error) {
      if (error instanceof EpochSuperseded || held.signal.aborted) return
      loop.logger.warn({ error }, 'rebuild interrupted; retrying')
      await loop.world.sleep(UNAVAILABLE_RETRY_MS, held.signal)
    }
  }
}

/** Runs until the signal. A rebuild that is in flight then continues from its checkpoint in the next process. */
export const runRebuilds = async (loop: RebuildLoop, stop: AbortSignal): Promise<void> => {
  while (!stop.aborted) {
    await loop.database.withLease('rebuild', stop, held => executeAll(loop, held))
    await loop.world.sleep(UNAVAILABLE_RETRY_MS, stop)
  }
}
