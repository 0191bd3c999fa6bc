import { readFile } from 'node:fs/promises'
import { journals, projections } from '../../projections/index.ts'
import type { Database, Sql } from '../ports.ts'
import { createTables } from '../schema/tables.ts'

/** Creates the missing tables of the service: the read models, and the operational tables of src/schema. */

const folder = new URL('../../projections/', import.meta.url)

/** The name of a read model's table contains its version. A changed table is a new table, so that nothing is migrated. */
const createReadModelTables = async (sql: Sql): Promise<void> => {
  for (const [name, { name: table }] of Object.entries({ ...projections, ...journals })) {
    const [found] = await sql<{ there: boolean }>('select to_regclass($1) is not null as there', [table])
    if (!found?.there) await sql(await readFile(new URL(`${name}/table.sql`, folder), 'utf8'))
  }
}

export const createLedgerTables = (database: Pick<Database, 'transaction'>): Promise<void> =>
  createTables(database, 'operationalTables', createReadModelTables)
