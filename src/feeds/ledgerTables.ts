import { readFile } from 'node:fs/promises'
import { journals, projections } from '../../projections/index.ts'
import type { Database, Sql } from '../ports.ts'
import { createTables } from '../schema/tables.ts'

/** Creates the missing tables of the service: the read models, and the operational tables of src/schema. */

const folder = new URL('../../projections/', import.meta.url)

const isThere = async (sql: Sql, name: string): Promise<boolean> => {
  const [found] = await sql<{ there: boolean }>('select to_regclass($1) is not null as there', [name])
  return found?.there === true
}

/** The name of a read model's table contains its version. A changed table is a new table, so that nothing is migrated. */
const createReadModelTables = async (sql: Sql): Promise<void> => {
  for (const [name, { name: table }] of Object.entries({ ...projections, ...journals }))
    if (!(await isThere(sql, table))) await sql(await readFile(new URL(`${name}/table.sql`, folder), 'utf8'))
}

const INDEX = /^create index (?<name>\w+) .*$/gm

/** An index that is there is not named to Postgres, because even `if not exists` waits for writers of its table. */
const createAddedIndexes = async (sql: Sql): Promise<void> => {
  const statements = await readFile(new URL('addedIndexes.sql', folder), 'utf8')
  for (const [statement, name = ''] of statements.matchAll(INDEX)) if (!(await isThere(sql, name))) await sql(statement)
}

export const createLedgerTables = (database: Pick<Database, 'transaction'>): Promise<void> =>
  createTables(database, 'operationalTables', async sql => {
    await createReadModelTables(sql)
    await createAddedIndexes(sql)
  })
