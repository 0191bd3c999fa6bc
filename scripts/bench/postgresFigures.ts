import type { Client } from 'pg'
import { withClient } from './apiClient.ts'

/** Commits, write-ahead log and scans of a Postgres server, from its cumulative statistics, and plans of statements. */

/** Counts of the whole server since its statistics were reset. Null: this version of Postgres does not count it. */
export type ServerCounts = Readonly<Record<string, number | null>>

/** Counts of one table. */
export type TableCounts = {
  readonly table: string
  readonly sequentialScans: number
  readonly rowsOfSequentialScans: number
  readonly indexScans: number
  readonly rowsOfIndexScans: number
  readonly rowsWritten: number
}

export type PostgresReading = { readonly server: ServerCounts; readonly tables: readonly TableCounts[] }

/** Postgres 18 counts writes and syncs of the log by pg_stat_io; earlier versions by columns of pg_stat_wal. */
const ioOf = (object: string, column: string): string =>
  `(select sum((to_jsonb(i)->>'${column}')::float8) from pg_stat_io i where to_jsonb(i)->>'object' = '${object}')`
const walOf = (column: string): string => `(select (to_jsonb(w)->>'${column}')::float8 from pg_stat_wal w)`

const SERVER_COUNTS = `select
  (select sum(xact_commit)::float8 from pg_stat_database) as "commits",
  (select sum(xact_rollback)::float8 from pg_stat_database) as "rollbacks",
  pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as "WAL bytes",
  ${walOf('wal_records')} as "WAL records",
  coalesce(${ioOf('wal', 'writes')}, ${walOf('wal_write')}) as "WAL writes",
  coalesce(${ioOf('wal', 'fsyncs')}, ${walOf('wal_sync')}) as "WAL syncs",
  ${ioOf('relation', 'fsyncs')} as "syncs of tables"`

const TABLE_COUNTS = `select format('%s.%s.%s', current_database(), schemaname, relname) as "table",
  seq_scan::float8 as "sequentialScans", seq_tup_read::float8 as "rowsOfSequentialScans",
  coalesce(idx_scan, 0)::float8 as "indexScans", coalesce(idx_tup_fetch, 0)::float8 as "rowsOfIndexScans",
  (n_tup_ins + n_tup_upd + n_tup_del)::float8 as "rowsWritten"
  from pg_stat_user_tables order by 1`

/** The URLs of all databases of the server. */
export const databasesOf = (databaseUrl: string): Promise<string[]> =>
  withClient(databaseUrl, async client => {
    const names = 'select datname from pg_database where not datistemplate order by 1'
    const { rows } = await client.query<{ datname: string }>(names)
    return rows.map(({ datname }) => Object.assign(new URL(databaseUrl), { pathname: `/${datname}` }).href)
  })

/** A backend reports its counts ten seconds after its last statement, or earlier. */
export const POSTGRES_REPORTS_MS = 11_000

/** The counts of the server and of each table of `databases`, as far as the backends have reported them. */
export const readPostgres = async (databases: readonly string[]): Promise<PostgresReading> => {
  const read = await Promise.all(
    databases.map(url =>
      withClient(url, async client => ({
        server: (await client.query<ServerCounts>(SERVER_COUNTS)).rows[0] ?? {},
        tables: (await client.query<TableCounts>(TABLE_COUNTS)).rows,
      })),
    ),
  )
  return { server: read[0]?.server ?? {}, tables: read.flatMap(({ tables }) => tables) }
}

const serverPerOperation = (before: ServerCounts, after: ServerCounts, count: number): ServerCounts =>
  Object.fromEntries(
    Object.entries(after).map(([name, now]) => {
      const then = before[name]
      return [name, now === null || then === null ? null : (now - (then ?? 0)) / count]
    }),
  )

/** The counts between two readings for each of `count` operations; tables that were not touched are left out. */
export const postgresPerOperation = (
  before: PostgresReading,
  after: PostgresReading,
  count: number,
): PostgresReading => {
  const earlier = new Map(before.tables.map(counts => [counts.table, counts]))
  const tables = after.tables.map(now => {
    const then = earlier.get(now.table)
    const perOperation = (of: (counts: TableCounts) => number): number =>
      (of(now) - (then === undefined ? 0 : of(then))) / count
    return {
      table: now.table,
      sequentialScans: perOperation(each => each.sequentialScans),
      rowsOfSequentialScans: perOperation(each => each.rowsOfSequentialScans),
      indexScans: perOperation(each => each.indexScans),
      rowsOfIndexScans: perOperation(each => each.rowsOfIndexScans),
      rowsWritten: perOperation(each => each.rowsWritten),
    }
  })
  const isTouched = (each: TableCounts): boolean => each.sequentialScans + each.indexScans + each.rowsWritten > 0
  return { server: serverPerOperation(before.server, after.server, count), tables: tables.filter(isTouched) }
}

export type Plan = {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly Plans?: readonly Plan[]
}

/** The accesses to tables in a plan of EXPLAIN (format json), such as `Index Scan payments_pkey`. */
export const accessesOf = (plan: Plan): string[] => {
  const below = (plan.Plans ?? []).flatMap(accessesOf)
  const on = plan['Index Name'] ?? plan['Relation Name']
  const isAccess = plan['Node Type'].includes('Scan') && on !== undefined
  return isAccess ? [`${plan['Node Type']} ${on}`, ...below] : below
}

const EXPLAIN = 'explain (generic_plan, costs off, format json)'
/** One statement that reads or changes rows: a second one after a semicolon would be executed. */
const EXPLAINABLE = /^\s*(?:select|insert|update|delete|with)\b[^;]*$/i

const explained = async (client: Client, text: string): Promise<readonly [string, string[]] | undefined> => {
  if (!EXPLAINABLE.test(text)) return undefined
  // A text of another database fails, and some have parameters whose types cannot be determined.
  const answer = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`${EXPLAIN} ${text}`).catch(() => undefined)
  const [row] = answer?.rows ?? []
  return row && [text, accessesOf(row['QUERY PLAN'][0].Plan)]
}

/** By the text of a statement: the accesses of its generic plan. Statements that cannot be explained are left out. */
export const plansOf = async (
  databases: readonly string[],
  texts: readonly string[],
): Promise<Map<string, readonly string[]>> => {
  const plans = new Map<string, readonly string[]>()
  for (const url of databases)
    await withClient(url, async client => {
      await client.query('set default_transaction_read_only = on')
      for (const text of texts) {
        const plan = await explained(client, text)
        if (plan !== undefined) plans.set(...plan)
      }
    })
  return plans
}
