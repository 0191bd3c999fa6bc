import type { Sql } from '../../ports.ts'
import { relationExists } from '../../schema/existingRelations.ts'
import { BUILDING_SCHEMA, PREVIOUS_SCHEMA } from '../../schema/rebuildSchemas.ts'
import { EpochSuperseded } from '../checkpoints.ts'
import type { FeedDependencies } from '../feedLoop.ts'
import { type Rebuildable } from './rebuildable.ts'
import type { RebuildRow } from './requests.ts'

/** Each begins with the row of the rebuild, which an old epoch cannot update and a cancelled rebuild does not have. */

export type RebuildDependencies = Pick<FeedDependencies, 'database' | 'store' | 'world'>

/** A rebuild in one run of the process that executes it. */
export type OpenRebuild = {
  readonly row: RebuildRow
  readonly rebuildable: Rebuildable
  readonly epoch: bigint
  readonly live: string
  readonly signal: AbortSignal
}

/** The rebuild was cancelled, or has ended. */
export class RebuildEnded extends Error {
  constructor(id: string) {
    super(`The rebuild ${id} is no longer running.`)
    this.name = 'RebuildEnded'
  }
}

/** Tests the epoch and that the rebuild is in flight, and sets the columns of `change`: `$3` and later are its values. */
export const updateRebuild = async (
  sql: Sql,
  { row: { id }, epoch }: Pick<OpenRebuild, 'row' | 'epoch'>,
  change: string,
  values: readonly unknown[] = [],
): Promise<void> => {
  const updated = await sql(
    `update projection_rebuilds set ${change} where id = $1 and epoch = $2 and state = 'running' returning id`,
    [id, epoch, ...values],
  )
  if (updated.length > 0) return
  const [current] = await sql<{ epoch: bigint }>('select epoch from projection_rebuilds where id = $1', [id])
  if (current !== undefined && current.epoch > epoch) throw new EpochSuperseded(`the rebuild ${id}`)
  throw new RebuildEnded(id)
}

const dropTables = async (sql: Sql, schema: string, tables: readonly string[]): Promise<void> => {
  for (const table of tables) await sql(`drop table if exists ${schema}.${table}`)
}

export const moveTables = async (sql: Sql, tables: readonly string[], from: string, to: string): Promise<void> => {
  for (const table of tables) {
    await sql(`drop table if exists "${to}".${table}`)
    await sql(`alter table if exists "${from}".${table} set schema "${to}"`)
  }
}

const createTables = async (sql: Sql, { statements, tables }: Rebuildable, live: string): Promise<void> => {
  await dropTables(sql, BUILDING_SCHEMA, tables)
  await sql(`set local search_path to ${BUILDING_SCHEMA}`)
  await sql(statements)
  await sql(`set local search_path to "${live}"`)
}

/** The tables of a roll-back are those that were kept, with the events that they have. Resolves to their position. */
const takePrevious = async (sql: Sql, { projection, tables }: Rebuildable): Promise<bigint> => {
  await moveTables(sql, tables, PREVIOUS_SCHEMA, BUILDING_SCHEMA)
  await sql(
    `update rebuild_held_events set generation = 'building' where projection = $1 and generation = 'previous'`,
    [projection],
  )
  const [kept] = await sql<{ position: bigint }>('select position from previous_projections where projection = $1', [
    projection,
  ])
  return kept?.position ?? -1n
}

const clearHeld = async (sql: Sql, projection: string, generation: 'building' | 'previous'): Promise<void> => {
  await sql('delete from rebuild_held_events where projection = $1 and generation = $2', [projection, generation])
}

/** Throws if a table is missing: its name would be that of the live table, by the search path. */
export const requireBuildingTables = async (sql: Sql, tables: readonly string[]): Promise<void> => {
  for (const table of tables) {
    const relation = `${BUILDING_SCHEMA}.${table}`
    if (!(await relationExists(sql, relation))) throw new Error(`The table ${relation} does not exist any more.`)
  }
}

const DDL_TIMEOUT_MS = 60_000

/**
 * Takes the rebuild over in this epoch: one that was begun before is resumed; otherwise its tables are made, or a
 * roll-back takes those that were kept. Resolves to the position to continue after, as the locked row has it, because a
 * batch without an answer may have moved it.
 */
export const takeOver = (
  { database }: RebuildDependencies,
  { id, kind, prepared }: RebuildRow,
  { rebuildable, epoch, live }: Pick<OpenRebuild, 'rebuildable' | 'epoch' | 'live'>,
): Promise<bigint> =>
  database.transaction(async sql => {
    const [rebuild] = await sql<{ position: bigint }>(
      `update projection_rebuilds set state = 'running', epoch = $2, prepared = true, error = null
        where id = $1 and epoch <= $2 and state in ('pending', 'running') returning position`,
      [id, epoch],
    )
    if (rebuild === undefined) throw new RebuildEnded(id)
    if (prepared) {
      await requireBuildingTables(sql, rebuildable.tables)
      return rebuild.position
    }
    for (const schema of [BUILDING_SCHEMA, PREVIOUS_SCHEMA]) await sql(`create schema if not exists ${schema}`)
    await clearHeld(sql, rebuildable.projection, 'building')
    if (kind !== 'rollback') await createTables(sql, rebuildable, live)
    const from = kind === 'rollback' ? await takePrevious(sql, rebuildable) : -1n
    await requireBuildingTables(sql, rebuildable.tables)
    await sql('update projection_rebuilds set position = $2 where id = $1', [id, from])
    return from
  }, DDL_TIMEOUT_MS)

/** Drops the tables of a rebuild that has ended without a switch. Those of a roll-back are kept again, as they are now. */
export const releaseTables = (
  { database }: RebuildDependencies,
  { id, kind, projection, position }: RebuildRow,
  tables: readonly string[],
): Promise<void> =>
  database.transaction(async sql => {
    const released = await sql(
      'update projection_rebuilds set prepared = false where id = $1 and prepared returning id',
      [id],
    )
    if (released.length === 0) return
    if (kind !== 'rollback') {
      await dropTables(sql, BUILDING_SCHEMA, tables)
      return clearHeld(sql, projection, 'building')
    }
    await moveTables(sql, tables, BUILDING_SCHEMA, PREVIOUS_SCHEMA)
    await sql('update previous_projections set position = $2 where projection = $1', [projection, position])
    await sql(
      `update rebuild_held_events set generation = 'previous' where projection = $1 and generation = 'building'`,
      [projection],
    )
  }, DDL_TIMEOUT_MS)

/** Notes which events the replaced tables lack, and up to which position they have the others. */
export const keepPrevious = async (sql: Sql, { projection, model }: Rebuildable, position: bigint): Promise<void> => {
  await clearHeld(sql, projection, 'building')
  await clearHeld(sql, projection, 'previous')
  await sql(
    `insert into rebuild_held_events (projection, generation, position, key, stream, revision, event_id, type, tenant_id)
      select $1, 'previous', position, key, stream, revision, event_id, type, tenant_id
      from parked_facts where delivery = $2`,
    [projection, model.name],
  )
  await sql(
    `insert into previous_projections (projection, position) values ($1, $2)
      on conflict (projection) do update set position = excluded.position, replaced_at = now()`,
    [projection, position],
  )
}
