import { journals, READ_MODEL_TABLES } from '../../projections/index.ts'
import type { CloudEvent } from '../../streams/facts.ts'
import { streamOfId } from '../../streams/index.ts'
import type { Database, EventStore, Sql, World } from '../ports.ts'
import { BUILDING_SCHEMA, PREVIOUS_SCHEMA } from '../schema/rebuildSchemas.ts'
import { hasIdempotencyRecords, IdSecretLost, SECRET_STREAM } from './idSecret.ts'

/**
 * Checks that the tables of a database are made from the log of this event store. A log is identified by the event that
 * made its secret: every log has one, and no two logs have the same. Read models, checkpoints and dead letters of
 * another log, or of a later state of this one (the store was restored from an older backup), would be served as if
 * they were of this one, and its events would be missing from them forever. The check is made at every start, and
 * repeated while the service runs.
 */

/** The tables were made from another log. The message names both logs and the command that rebuilds the tables. */
export class AnotherLog extends Error {
  constructor(finding: string) {
    super(
      `${finding} Correct EVENTSTORE_URL or DATABASE_URL; or stop every instance of the service and rebuild the read models, ` +
        'checkpoints and dead letters from this log: npm run ledger -- projections reset --to-this-log',
    )
    this.name = 'AnotherLog'
  }
}

/** Whether the error says that the log and the tables do not match, so that no service may run on them. */
export const isMismatch = (error: unknown): error is AnotherLog | IdSecretLost =>
  error instanceof AnotherLog || error instanceof IdSecretLost

export type Compared = {
  readonly database: Pick<Database, 'sql'>
  readonly store: Pick<EventStore, 'readStream' | 'head' | 'subscribe'>
  readonly world: Pick<World, 'sleep'>
}

const idAt = async (
  store: Pick<EventStore, 'readStream'>,
  stream: string,
  from: bigint,
): Promise<string | undefined> => {
  for await (const { id } of store.readStream(stream, { from, limit: 1 })) return id
  return undefined
}

/** The identity of the log in the event store; undefined for a log in which nothing was created yet. */
export const logIn = (store: Pick<EventStore, 'readStream'>): Promise<string | undefined> =>
  idAt(store, SECRET_STREAM, 0n)

/** The identity of the log that the tables are of; undefined for empty tables. */
export const logOf = async (sql: Sql): Promise<string | undefined> =>
  (await sql<{ log: string }>('select log from log_identity where id = 1'))[0]?.log

const NEWEST = `select greatest((select max(position) from ${journals.facts.name}),
  (select max(position) from ${journals.audit.name})) as position`
const NEWEST_FACT = `select position, event from ${journals.facts.name} order by position desc limit 1`

/** A fact that was found both in the tables and in the log. */
export type SeenFact = Pick<CloudEvent, 'subject' | 'sequence' | 'id'>

const isIn = async (store: Compared['store'], { subject, sequence, id }: SeenFact): Promise<boolean> =>
  (await idAt(store, streamOfId(subject), BigInt(sequence))) === id

/** Throws AnotherLog when the newest rows are of events that the log, restored from a backup, does not have. */
const checkRows = async ({ database: { sql }, store }: Compared, log: string, seen: SeenFact | undefined) => {
  const [newest] = await sql<{ position: bigint | null }>(NEWEST)
  const position = newest?.position ?? 0n
  const head = await store.head()
  if (position > head)
    throw new AnotherLog(
      `The tables in Postgres are of a later state of the log ${log}: they go up to position ${position}, and the log ends at ${head}.`,
    )
  const [fact] = await sql<{ position: bigint; event: CloudEvent }>(NEWEST_FACT)
  for (const one of [seen, fact?.event])
    if (one && !(await isIn(store, one)))
      throw new AnotherLog(
        `The tables in Postgres are of another state of the log ${log}: their newest fact, ${one.id}, is not in it.`,
      )
  return fact?.event ?? seen
}

const compareOnce = async (dependencies: Compared, seen: SeenFact | undefined): Promise<SeenFact | undefined> => {
  const { database, store } = dependencies
  const [of, found] = [await logOf(database.sql), await logIn(store)]
  // The advice for another log would empty the tables, and the service would not start all the same.
  if (of !== undefined && found === undefined && (await hasIdempotencyRecords({ store }))) throw new IdSecretLost()
  const log = found ?? 'none, for it is new'
  if (of !== undefined && of !== log)
    throw new AnotherLog(`The tables in Postgres are of the log ${of}; the log of the event store is ${log}.`)
  return checkRows(dependencies, log, seen)
}

/** A node that was the leader may lag, and answer as the leader until it learns of the next one. */
const ATTEMPTS = 5
const ATTEMPT_PAUSE_MS = 1_000

/**
 * Compares only. Throws AnotherLog or IdSecretLost if each of several comparisons finds it; Unavailable when the store or the database does
 * not answer. Resolves to the newest fact, which is passed to the next comparison as `seen`. Without it a log would pass that
 * was restored while the service runs, and has grown past its former end before the next comparison: the newest rows are then
 * of events that it has.
 */
export const checkLog = async (dependencies: Compared, seen?: SeenFact): Promise<SeenFact | undefined> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await compareOnce(dependencies, seen)
    } catch (error) {
      if (!isMismatch(error) || attempt === ATTEMPTS) throw error
    }
    await dependencies.world.sleep(ATTEMPT_PAUSE_MS)
  }
}

type AdoptedLog = Omit<Compared, 'database'> & { readonly idSecret: () => Promise<unknown> }

/** As checkLog; also stores the identity of the log for tables that have none yet. */
export const adoptLog = async (
  { idSecret, store, world }: AdoptedLog,
  database: Compared['database'],
): Promise<void> => {
  await checkLog({ database, store, world })
  await idSecret()
  const log = await logIn(store)
  await database.sql('insert into log_identity (id, log) values (1, $1) on conflict do nothing', [log])
  await checkLog({ database, store, world })
}

/** The tables that are made from the log: read models, checkpoints, dead letters. */
const FROM_LOG = [
  ...READ_MODEL_TABLES,
  ...['checkpoints', 'parked_facts', 'late_facts', 'discarded_events', 'subscription_deliveries'],
  ...['projection_rebuilds', 'rebuild_held_events', 'previous_projections'],
  ...['feed_errors', 'reservations', 'log_identity', 'complete_read_models'],
]

/** The schemas stay, because triggers of live tables use functions that were created in them. */
const dropOtherGenerations = async (sql: Sql): Promise<void> => {
  const text = `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = any($1::text[])`
  for (const { name } of await sql<{ name: string }>(text, [[BUILDING_SCHEMA, PREVIOUS_SCHEMA]]))
    await sql(`drop table ${name}`)
}

/** Empties all tables made from a log; the feeds fill them again from the log of the next service. */
export const emptyTablesOfLog = async (sql: Sql): Promise<void> => {
  await sql(`truncate ${FROM_LOG.join(', ')}`)
  await dropOtherGenerations(sql)
}
