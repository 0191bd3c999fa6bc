import { readFile } from 'node:fs/promises'
import { READ_MODEL_FOLDERS } from '../../projections/index.ts'
import type { Database, Sql } from '../ports.ts'
import { tablesCreatedBy } from '../schema/createdTables.ts'
import { relationExists } from '../schema/existingRelations.ts'
import { createTables } from '../schema/tables.ts'

/** Creates the missing tables of the service: the read models, and the operational tables of src/schema. */

const folder = new URL('../../projections/', import.meta.url)

const tableFile = (name: string): Promise<string> => readFile(new URL(`${name}/table.sql`, folder), 'utf8')

/** The name of a read model's table contains its version. A changed table is a new table, so that nothing is migrated. */
const createReadModelTables = async (sql: Sql): Promise<void> => {
  for (const [name, table] of Object.entries(READ_MODEL_FOLDERS))
    if (!(await relationExists(sql, table))) await sql(await tableFile(name))
}

const INDEX = /^create index (?<name>\w+) on (?<table>\w+) .*$/gm

type Index = { readonly name: string; readonly table: string; readonly statement: string }

const addedIndexes = async (): Promise<Index[]> => {
  const statements = await readFile(new URL('addedIndexes.sql', folder), 'utf8')
  return [...statements.matchAll(INDEX)].map(([statement, name = '', table = '']) => ({ name, table, statement }))
}

/** The statements that create the tables of a folder with all of their indexes. */
export const statementsOf = async (name: string): Promise<readonly string[]> => {
  const tables = await tableFile(name)
  const created = tablesCreatedBy(tables)
  const added = (await addedIndexes()).filter(({ table }) => created.includes(table))
  return [tables, ...added.map(({ statement }) => statement)]
}

/** An index that exists is not named to Postgres, because even `if not exists` waits for writers of its table. */
const missingIndexes = async (sql: Sql): Promise<Index[]> => {
  const missing: Index[] = []
  for (const index of await addedIndexes()) if (!(await relationExists(sql, index.name))) missing.push(index)
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
      if (!(await relationExists(sql, name))) await sql(statement)
    })
}
