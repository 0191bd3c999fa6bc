import { readFile } from 'node:fs/promises'
import { journals, projections } from '../../projections/index.ts'
import type { Database } from '../ports.ts'
import { createCheckpoints } from './checkpoints.ts'

const folder = new URL('../../projections/', import.meta.url)

/** Any two processes that start at once agree on who creates the tables by this number. */
const SCHEMA_LOCK = 5_170_201

/** Tables beside the read models, which are there for as long as the ledger is. */
const KEPT = new URL('operationalTables.sql', import.meta.url)

/**
 * Creates what is missing. A read model's table has its version in its name and is made anew from the log, so there is
 * nothing to migrate: a changed table is another table.
 */
export const createTables = async (database: Database): Promise<void> => {
  await database.transaction(async sql => {
    await sql('select pg_advisory_xact_lock($1)', [SCHEMA_LOCK])
    await createCheckpoints(sql)
    for (const [place, { name }] of Object.entries({ ...projections, ...journals })) {
      const [found] = await sql<{ there: boolean }>('select to_regclass($1) is not null as there', [name])
      if (!found?.there) await sql(await readFile(new URL(`${place}/table.sql`, folder), 'utf8'))
    }
    await sql(await readFile(KEPT, 'utf8'))
  })
}
