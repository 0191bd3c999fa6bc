import { partsOf } from '../../../streams/aggregate.ts'
import { BOOKS, BOOKS_CATEGORIES } from '../../../projections/books/projection.ts'
import { books } from '../../../projections/index.ts'
import { reaches } from '../../../src/evidence/continuity.ts'
import { booksReadModel } from '../../../src/feeds/booksWriter.ts'
import { positionOf } from '../../../src/feeds/checkpoints.ts'
import { decode } from '../../../src/feeds/decode.ts'
import { eventsInRange } from '../../../src/feeds/rebuild/catchUp.ts'
import { liveSchema } from '../../../src/feeds/rebuild/rebuildable.ts'
import type { Sql, StoredEvent } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { differencesInBooks } from './bookDifferences.ts'
import { type Finding, nothingCompared, type Outcome, type VerifyCheck, type Verified } from './check.ts'

/**
 * The check of the books: every entry, posting, balance and account is made again from all events of the log, and compared with
 * the rows in Postgres. The derived rows are in temporary tables of this connection, so that the memory is that of one batch,
 * and the transaction is read-only for every other table. The live rows, their checkpoint and the withheld events are read in one
 * snapshot, so that rows that the service writes meanwhile are no difference.
 */

/** The derivation of a long log, and each comparison. */
const TRANSACTION_TIMEOUT_MS = 3_600_000

const TABLES = Object.values(books.tables).map(({ name }) => name)

/** The tables are locked before the snapshot begins: a rebuild that replaced them in between would leave it empty ones. */
const beginSnapshot = async (sql: Sql): Promise<void> => {
  await sql('set transaction isolation level repeatable read')
  await sql('set local idle_in_transaction_session_timeout = 0')
  await sql(`lock table ${TABLES.join(', ')} in access share mode`)
}

/** Temporary tables with the names of the live ones, which every statement of the writer of the books then means. */
const createDerivedTables = async (sql: Sql): Promise<string> => {
  const live = await liveSchema(sql)
  for (const table of TABLES)
    await sql(`create temporary table ${table} (like "${live}".${table} including all) on commit drop`)
  await sql(`set local search_path to pg_temp, "${live}"`)
  await sql('set transaction read only')
  return live
}

/** Events that the books lack for a reason that operators know: they are parked, or were discarded. */
const withheldEvents = async (sql: Sql): Promise<ReadonlySet<bigint>> => {
  const rows = await sql<{ position: bigint }>(
    `select position from parked_facts where delivery = $1 union select position from discarded_events where delivery = $1`,
    [BOOKS],
  )
  return new Set(rows.map(({ position }) => position))
}

const derive = async (sql: Sql, { store, startProgress, signal }: Verified, upTo: bigint): Promise<number> => {
  const withheld = await withheldEvents(sql)
  const progress = startProgress('books', 'events')
  const isWritten = ({ position, stream }: StoredEvent): boolean =>
    !withheld.has(position) && BOOKS_CATEGORIES.includes(partsOf(stream).category)
  let count = 0
  try {
    for await (const { events } of eventsInRange(store, { after: -1n, upTo, categories: BOOKS_CATEGORIES, signal })) {
      const recorded = events.filter(isWritten).map(stored => decode(stored).recorded)
      if (recorded.length > 0) await booksReadModel.write(sql, recorded)
      count += events.length
      progress.advance(events.length)
    }
  } finally {
    progress.end()
  }
  return count
}

const countsOf = async (sql: Sql): Promise<Readonly<Record<string, bigint>>> => {
  const counts: Record<string, bigint> = {}
  for (const [name, { name: table }] of Object.entries(books.tables)) {
    const [row] = await sql<{ count: bigint }>(`select count(*) as count from ${table}`)
    counts[name] = row?.count ?? 0n
  }
  return counts
}

/** Without a checkpoint, position zero, no event is derived, and empty tables would agree with any log. */
const checkpointFindings = async ({ store, signal }: Verified, upTo: bigint): Promise<readonly Finding[]> => {
  if (upTo > 0n) return []
  const log = { after: -1n, upTo: await store.head(), categories: BOOKS_CATEGORIES, signal }
  for await (const { events } of eventsInRange(store, log))
    if (events.length > 0)
      return [{ kind: 'not_compared', detail: 'The books have no checkpoint, and the log has events for them.' }]
  return []
}

const compare = async (sql: Sql, verified: Verified, upTo: bigint): Promise<Outcome> => {
  const live = await createDerivedTables(sql)
  const events = await derive(sql, verified, upTo)
  const findings = [...(await checkpointFindings(verified, upTo)), ...(await differencesInBooks(sql, live))]
  const { entries = 0n, postings = 0n, accounts = 0n } = await countsOf(sql)
  const compared = `${entries} entries, ${postings} postings and the balances of ${accounts} accounts`
  return {
    detail: `${compared} were derived from ${events} events up to position ${upTo}${findings.length === 0 ? ', and agree.' : '.'}`,
    findings,
    counts: { events, entries, postings, accounts },
  }
}

const compareInSnapshot = (verified: Verified): Promise<Outcome> =>
  verified.database.transaction(async sql => {
    await beginSnapshot(sql)
    const upTo = await positionOf(sql, BOOKS)
    if (await reaches(verified.store, upTo, verified.world)) return compare(sql, verified, upTo)
    const head = await verified.store.head()
    const detail = `The log ends at position ${head}, and the books go up to ${upTo}.`
    return { detail, findings: [{ kind: 'log_ends_early', detail, place: { head, position: upTo } }] }
  }, TRANSACTION_TIMEOUT_MS)

export const booksCheck: VerifyCheck = {
  name: 'books',
  run: async verified => {
    const { sql } = verified.database
    if (!(await relationExists(sql, BOOKS))) return nothingCompared(verified, 'There are no books yet.')
    return compareInSnapshot(verified)
  },
}
