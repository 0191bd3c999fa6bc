import { READ_MODEL_FOLDERS } from '../../../projections/index.ts'
import type { Sql } from '../../ports.ts'
import { tablesCreatedBy } from '../../schema/createdTables.ts'
import { BUILDING_SCHEMA } from '../../schema/rebuildSchemas.ts'
import { tableFile } from '../ledgerTables.ts'
import type { ReadModel } from '../readModel.ts'
import { readModels } from '../readModels.ts'

/**
 * The read models as they are rebuilt: each with its tables, which are those that its table.sql creates.
 *
 * New tables have the names of the live ones, in a schema of their own, so the statements of a read model write them
 * unchanged once the search path begins with that schema. A switch moves tables from schema to schema, with their indexes.
 */

export type Rebuildable = {
  /** The folder in projections/. */
  readonly projection: string
  readonly model: ReadModel
  readonly tables: readonly string[]
  /** Creates the tables with their indexes, in the first schema of the search path. */
  readonly statements: string
}

/** Undefined for a name that this build does not know. `models` are the projector's. */
export const rebuildableOf = async (
  projection: string,
  models: readonly ReadModel[] = readModels,
): Promise<Rebuildable | undefined> => {
  const table = READ_MODEL_FOLDERS[projection]
  const model = models.find(({ name }) => name === table)
  if (model === undefined) return undefined
  const statements = await tableFile(projection)
  return { projection, model, tables: tablesCreatedBy(statements), statements }
}

export const liveSchema = async (sql: Sql): Promise<string> =>
  (await sql<{ schema: string }>('select current_schema() as schema'))[0]?.schema ?? 'public'

/** Until the end of the transaction, names are those of the tables that are being built, and of live ones where there are none. */
export const nameBuildingTables = async (sql: Sql, live: string): Promise<void> => {
  await sql(`set local search_path to ${BUILDING_SCHEMA}, "${live}"`)
}

export const nameLiveTables = async (sql: Sql, live: string): Promise<void> => {
  await sql(`set local search_path to "${live}"`)
}
