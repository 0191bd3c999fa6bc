import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, type Sql, Unavailable } from '../ports.ts'
import { ADVISORY_LOCKS } from './locks.ts'

/** The tables that are not read models, by the .sql files of this folder. */

const FILES = {
  operationalTables: 'operational.sql',
  cursorSecrets: 'cursorSecrets.sql',
  rateCounters: 'rateCounters.sql',
  issuerRevocations: 'issuerRevocations.sql',
  evidence: 'evidence.sql',
  leases: 'leases.sql',
  embeddedEvents: 'embeddedEvents.sql',
} as const

export const tableStatements = (name: keyof typeof FILES): Promise<string> =>
  readFile(new URL(FILES[name], import.meta.url), 'utf8')

/** Other processes may be creating the same tables. */
const STATEMENT_TIMEOUT_MS = 600_000

/** How long the creation is repeated while Postgres does not answer, and the pause before each repetition. */
const UNANSWERED_MAX_MS = 30_000
const RETRY_MS = 250

/** Repeats work that may have been done already while Postgres does not answer. Throws the last Unavailable. */
const repeatedUntilAnswered = async (work: () => Promise<void>, onUnanswered: (error: Unavailable) => void) => {
  const deadlineMs = performance.now() + UNANSWERED_MAX_MS
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Unavailable) || performance.now() > deadlineMs) throw error
      onUnanswered(error)
    }
    await sleep(RETRY_MS)
  }
}

/**
 * The lock serializes processes that start at once. All of it may be repeated, because Postgres or the machine may be
 * busy starting too; `onUnanswered` gets the reason.
 */
export const createTables = async (
  database: Pick<Database, 'transaction'>,
  name: keyof typeof FILES & keyof typeof ADVISORY_LOCKS,
  create: (sql: Sql) => Promise<void> = async () => undefined,
  onUnanswered: (error: Unavailable) => void = () => undefined,
): Promise<void> => {
  const statements = await tableStatements(name)
  const createAll = async (sql: Sql): Promise<void> => {
    await sql('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS[name]])
    await sql(statements)
    await create(sql)
  }
  await repeatedUntilAnswered(() => database.transaction(createAll, STATEMENT_TIMEOUT_MS), onUnanswered)
}
