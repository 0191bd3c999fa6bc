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

type Index = { readonly name: string; readonly statement: string }

/** An index that is there is not named to Postgres, because even `if not exists` waits for writers of its table. */
const missingIndexes = async (sql: Sql): Promise<Index[]> => {
  const statements = await readFile(new URL('addedIndexes.sql', folder), 'utf8')
  const missing: Index[] = []
  for (const [statement, name = ''] of statements.matchAll(INDEX))
    if (!(await isThere(sql, name))) missing.push({ name, statement })
  return missing
}

/**
 * Each added index has a transaction of its own: one transaction would lock several tables against writers until its end, and
 * could wait for the projector of another process, which writes the same tables in another order, while that waits for it.
 */
export const createLedgerTables = async (database: Pick<Database, 'transaction'>): Promise<void> => {
  let missing: readonly Index[] = []
  await createTables(database, 'operationalTables', async sql => {
    await createReadModelTables(sql)
    missing = await missingIndexes(sql)
  })
  for (const { name, statement } of missing)
    await createTables(database, 'operationalTables', async sql => {
      if (!(await isThere(sql, name))) await sql(statement)
    })
}
