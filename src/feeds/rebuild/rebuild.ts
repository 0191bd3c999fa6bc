import type { CopyRows } from '../../../projections/projection.ts'
import { type Sql, Unavailable } from '../../ports.ts'
import { relationExists } from '../../schema/existingRelations.ts'
import { BUILDING_SCHEMA, PREVIOUS_SCHEMA } from '../../schema/rebuildSchemas.ts'
import { positionOf } from '../checkpoints.ts'
import { eventsInRange, type RangeBatch } from './catchUp.ts'
import { type Transaction, writeEvents } from './heldEvents.ts'
import { type Compared, compareRecentRows, compareTables } from './parity.ts'
import { nameBuildingTables, nameLiveTables } from './rebuildable.ts'
import {
  keepPrevious,
  moveTables,
  type OpenRebuild,
  type RebuildDependencies,
  requireBuildingTables,
  updateRebuild,
} from './rebuildTransactions.ts'
import type { Difference } from './requests.ts'

/**
 * One rebuild, from its checkpoint to its end:
 *
 *   1. events up to the checkpoint of the live tables are written to the new ones, batch by batch, each with the checkpoint of
 *      the rebuild in one transaction
 *   2. while the checkpoint of the live tables is locked, the last events are written and a snapshot begins: in it both have the
 *      same events. All rows are compared in that snapshot, while the projector continues
 *   3. while the checkpoint is locked again, the events since are written, the rows that changed since are compared, and the
 *      tables exchange their schemas: one transaction
 *
 * The new tables never have an event that the live ones have not, so what is parked or discarded is known (heldEvents.ts).
 */

const TRANSACTION_TIMEOUT_MS = 30_000
/** A comparison reads every row of a table, sorts and hashes it. */
const COMPARISON_TIMEOUT_MS = 1_800_000
/** Fewer events than this may be written while the live tables wait. */
const SMALL_LAG_EVENTS = 500
const CATCH_UPS_MAX = 20
/** Queries of requests wait at most this long behind the switch, which tries again when a reader holds the tables for longer. */
const LOCK_TIMEOUT_MS = 300
const SWITCH_PAUSE_MS = 500

type Checkpoint = { position: bigint; done: bigint }

/** The progress of this run: the rate is that of the run, the total follows from the share of the log that was read. */
const progressOf = ({ world }: RebuildDependencies, from: Checkpoint) => {
  const beganAtMs = world.monotonicMs()
  const begin = { ...from }
  return ({ position, done }: Checkpoint, head: bigint) => {
    const elapsedMs = BigInt(Math.max(1, Math.round(world.monotonicMs() - beganAtMs)))
    const rate = ((done - begin.done) * 1_000n) / elapsedMs
    const read = position - (begin.position < 0n ? 0n : begin.position)
    const left = head > position ? head - position : 0n
    const total = position > 0n ? done + (done * left) / position : done
    const eta = read > 0n ? (elapsedMs * left) / read / 1_000n : null
    return { rate, total, eta }
  }
}

export type Run = {
  readonly dependencies: RebuildDependencies
  readonly rebuild: OpenRebuild
  readonly reached: Checkpoint
  readonly progress: ReturnType<typeof progressOf>
}

export const runOf = (dependencies: RebuildDependencies, rebuild: OpenRebuild, position: bigint): Run => {
  const reached = { position, done: rebuild.row.done }
  return { dependencies, rebuild, reached, progress: progressOf(dependencies, reached) }
}

/** Writes a batch in a transaction, and moves the checkpoint of the rebuild. Resolves to the checkpoint. */
const writeBatch = async (
  { sql, copy }: Transaction,
  { dependencies: { store }, rebuild, reached, progress }: Run,
  { events, position }: RangeBatch,
  head: bigint,
): Promise<Checkpoint> => {
  const next = { position, done: reached.done + BigInt(events.length) }
  const { rate, total, eta } = progress(next, head)
  await updateRebuild(sql, rebuild, 'position = $3, done = $4, total = $5, rate = $6, eta_seconds = $7', [
    position,
    next.done,
    total,
    rate,
    eta,
  ])
  await nameBuildingTables(sql, rebuild.live)
  await writeEvents({ sql, copy }, rebuild.rebuildable, store, events)
  await nameLiveTables(sql, rebuild.live)
  return next
}

/** At least one batch: one without events still writes those that are held no longer. */
async function* batchesTo(run: Run, upTo: bigint): AsyncGenerator<RangeBatch> {
  const { dependencies, rebuild, reached } = run
  const { signal, rebuildable } = rebuild
  const { categories } = rebuildable.model
  if (upTo <= reached.position) yield { events: [], position: reached.position }
  else yield* eventsInRange(dependencies.store, { after: reached.position, upTo, categories, signal })
}

/** Writes everything up to `upTo`, a batch in a transaction. Resolves to the number of events. */
const catchUpTo = async (run: Run, upTo: bigint): Promise<bigint> => {
  const { dependencies, reached } = run
  const before = reached.done
  for await (const batch of batchesTo(run, upTo)) {
    const write = (sql: Sql, copy?: CopyRows): Promise<Checkpoint> => writeBatch({ sql, copy }, run, batch, upTo)
    Object.assign(reached, await dependencies.database.transaction(write, TRANSACTION_TIMEOUT_MS))
    dependencies.world.crashPoint('rebuild_batch')
  }
  return reached.done - before
}

const livePosition = ({ dependencies: { database }, rebuild: { rebuildable } }: Run): Promise<bigint> =>
  positionOf(database.sql, rebuildable.model.name)

/** Until few events are missing. Under more writes than this process can follow it continues after some rounds. */
const catchUp = async (run: Run): Promise<void> => {
  for (let round = 0; round < CATCH_UPS_MAX; round += 1) {
    run.rebuild.signal.throwIfAborted()
    const upTo = await livePosition(run)
    if (upTo <= run.reached.position) return
    if ((await catchUpTo(run, upTo)) < SMALL_LAG_EVENTS) return
  }
}

/** Keeps the projector from writing until the end of the transaction. Resolves to the position of the live tables. */
const lockLive = async (sql: Sql, { rebuild: { rebuildable } }: Run): Promise<bigint> => {
  const [row] = await sql<{ position: bigint }>('select position from checkpoints where name = $1 for update', [
    rebuildable.model.name,
  ])
  return row === undefined || row.position < 0n ? 0n : row.position
}

type ComparedAt = Compared & { readonly position: bigint; readonly since: string }

const compare = async (run: Run): Promise<ComparedAt> => {
  const { dependencies, rebuild } = run
  const { database } = dependencies
  return database.snapshot(async ({ sql }) => {
    let since = ''
    const position = await database.transaction(async hold => {
      const upTo = await lockLive(hold, run)
      await catchUpTo(run, upTo)
      // The first statement of the snapshot, after which later commits are not visible in it.
      const [begun] = await sql<{ since: string }>(
        'select pg_snapshot_xmin(pg_current_snapshot())::xid::text as since from projection_rebuilds limit 1',
      )
      since = begun?.since ?? '0'
      return upTo
    }, TRANSACTION_TIMEOUT_MS)
    return { ...(await compareTables(sql, rebuild.live, rebuild.rebuildable.tables)), position, since }
  }, COMPARISON_TIMEOUT_MS)
}

/** New tables have no statistics, without which queries of lists would read them whole. */
const analyze = async ({ dependencies: { database }, rebuild: { rebuildable } }: Run): Promise<void> => {
  for (const table of rebuildable.tables)
    await database.transaction(sql => sql(`analyze ${BUILDING_SCHEMA}.${table}`), TRANSACTION_TIMEOUT_MS)
}

const exchangeTables = async (sql: Sql, { rebuild: { rebuildable, live } }: Run): Promise<void> => {
  const { tables } = rebuildable
  await requireBuildingTables(sql, tables)
  await sql(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
  for (const table of tables) {
    const relation = `"${live}".${table}`
    if (await relationExists(sql, relation)) await sql(`lock table ${relation} in access exclusive mode`)
  }
  await moveTables(sql, tables, live, PREVIOUS_SCHEMA)
  await moveTables(sql, tables, BUILDING_SCHEMA, live)
}

/** Resolves to the first difference of rows that were written since the comparison; then nothing is switched. */
const switchTables = async (run: Run, since: string | undefined): Promise<Difference | undefined> => {
  const { dependencies, rebuild } = run
  return dependencies.database.transaction(async sql => {
    const upTo = await lockLive(sql, run)
    const checkpoint = { ...run.reached }
    for await (const batch of batchesTo(run, upTo))
      Object.assign(checkpoint, await writeBatch({ sql }, { ...run, reached: checkpoint }, batch, upTo))
    const difference =
      since === undefined ? undefined : await compareRecentRows(sql, rebuild.live, rebuild.rebuildable.tables, since)
    if (difference !== undefined) throw new DifferenceFound(difference)
    await exchangeTables(sql, run)
    await keepPrevious(sql, rebuild.rebuildable, upTo)
    await updateRebuild(
      sql,
      rebuild,
      `state = 'succeeded', prepared = false, ended_at = now(), total = done, eta_seconds = 0, error = null`,
    )
    dependencies.world.crashPoint('rebuild_switch')
    return undefined
  }, TRANSACTION_TIMEOUT_MS)
}

/** Thrown to undo the transaction that found it. */
class DifferenceFound extends Error {
  readonly difference: Difference
  constructor(difference: Difference) {
    super('The rows differ.')
    this.difference = difference
  }
}

/** A reader may hold the tables for as long as an export takes: the switch is tried again, so no request waits long. */
const switchWhenPossible = async (run: Run, since: string | undefined): Promise<Difference | undefined> => {
  const { dependencies, rebuild } = run
  for (;;) {
    rebuild.signal.throwIfAborted()
    try {
      return await switchTables(run, since)
    } catch (error) {
      if (error instanceof DifferenceFound) return error.difference
      if (!(error instanceof Unavailable)) throw error
    }
    const waits = `error = 'The tables are in use, by an export for example. The switch is tried again.'`
    await updateRebuild(dependencies.database.sql, rebuild, waits)
    await dependencies.world.sleep(SWITCH_PAUSE_MS, rebuild.signal)
    await catchUp(run)
  }
}

const endWith = ({ dependencies: { database }, rebuild }: Run, change: string, values: readonly unknown[] = []) =>
  updateRebuild(database.sql, rebuild, `${change}, ended_at = now(), eta_seconds = 0`, values)

/** Compares, and switches if the rows are equal. A verification ends with the comparison. */
const compareAndSwitch = async (run: Run): Promise<void> => {
  const { database } = run.dependencies
  const { tables, difference, position, since } = await compare(run)
  const parity = JSON.stringify({ position: String(position), tables })
  const differenceText = difference === undefined ? null : JSON.stringify(difference)
  await updateRebuild(database.sql, run.rebuild, 'parity = $3, difference = $4', [parity, differenceText])
  if (run.rebuild.row.kind === 'verify') return endWith(run, `state = 'succeeded'`)
  const later = difference === undefined ? await switchWhenPossible(run, since) : difference
  if (later === undefined) return
  // Not ended: an operator may accept the difference.
  await updateRebuild(database.sql, run.rebuild, `state = 'refused', difference = $3`, [JSON.stringify(later)])
}

/** Executes the rebuild to its end. Throws RebuildEnded, EpochSuperseded, Unavailable, or the failure of an event. */
export const executeRebuild = async (run: Run): Promise<void> => {
  const { row } = run.rebuild
  await catchUp(run)
  await analyze(run)
  if (row.kind === 'rollback' || row.accepted_reason !== null) await switchWhenPossible(run, undefined)
  else await compareAndSwitch(run)
}
