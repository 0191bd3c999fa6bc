import { readFile } from 'node:fs/promises'
import type { Database, Sql } from '../ports.ts'
import { ADVISORY_LOCKS } from './locks.ts'

/**
 * The tables that are not read models: their statements are in the .sql files of this folder. The tables of read models are
 * in projections/<name>/table.sql, because they are dropped and rebuilt from the log.
 */

const FILES = {
  operationalTables: 'operational.sql',
  cursorSecrets: 'cursorSecrets.sql',
  rateCounters: 'rateCounters.sql',
  issuerRecords: 'issuerRecords.sql',
  issuerRevocations: 'issuerRevocations.sql',
  issuerLoginFailures: 'issuerLoginFailures.sql',
  leases: 'leases.sql',
  embeddedEvents: 'embeddedEvents.sql',
} as const

export const tableStatements = (name: keyof typeof FILES): Promise<string> =>
  readFile(new URL(FILES[name], import.meta.url), 'utf8')

/** An index of a new build may be created on a large table, and another process may be creating it. */
const STATEMENT_TIMEOUT_MS = 600_000

/** Creates missing tables. The lock serializes processes that start at once. `create` runs in the same transaction. */
export const createTables = async (
  database: Pick<Database, 'transaction'>,
  name: keyof typeof FILES & keyof typeof ADVISORY_LOCKS,
  create: (sql: Sql) => Promise<void> = async () => undefined,
): Promise<void> => {
  const statements = await tableStatements(name)
  await database.transaction(async sql => {
    await sql('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS[name]])
    await sql(statements)
    await create(sql)
  }, STATEMENT_TIMEOUT_MS)
}
