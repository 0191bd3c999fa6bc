import { readFile } from 'node:fs/promises'
import { READ_MODEL_FOLDERS } from '../../projections/index.ts'
import type { Database, Sql, Unavailable } from '../ports.ts'
import { relationExists } from '../schema/existingRelations.ts'
import { createTables } from '../schema/tables.ts'

const folder = new URL('../../projections/', import.meta.url)

/** The statements that create the tables of a folder with their indexes. */
export const tableFile = (name: string): Promise<string> => readFile(new URL(`${name}/table.sql`, folder), 'utf8')

/** The name of a read model's table contains its version. A changed table is a new table, so nothing is migrated. */
const createReadModelTables = async (sql: Sql): Promise<void> => {
  for (const [name, table] of Object.entries(READ_MODEL_FOLDERS))
    if (!(await relationExists(sql, table))) await sql(await tableFile(name))
}

export const createLedgerTables = (
  database: Pick<Database, 'transaction'>,
  onUnanswered?: (error: Unavailable) => void,
): Promise<void> => createTables(database, 'operationalTables', createReadModelTables, onUnanswered)
