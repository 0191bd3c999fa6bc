import { type Columns, fold, type Journal, type Projection, type ResourceRow } from '../../projections/projection.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Database, Sql, StoredEvent } from '../ports.ts'
import { moveCheckpoint } from './checkpoints.ts'
import { decode } from './decode.ts'
import type { Feed } from './run.ts'

type AnyProjection = Projection<AnyEvent, ResourceRow>
type AnyJournal = Journal<AnyEvent, object>

const isJson = (type: string): boolean => type === 'json'

/** One array per column, so that a batch of any size is one statement with one text. */
const arraysOf = (columns: Columns, rows: readonly object[]): unknown[][] =>
  Object.entries(columns).map(([name, type]) =>
    rows.map(row => {
      const value: unknown = (row as Record<string, unknown>)[name]
      return isJson(type) ? JSON.stringify(value) : value
    }),
  )

const insertOf = (name: string, columns: Columns): string => {
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${type}[]`)
  return `insert into ${name} (${Object.keys(columns).join(', ')}) select * from unnest(${arrays.join(', ')})`
}

// A batch is folded in memory and written as it ends: an invoice that moved five times in it is one row written once.
const takeRows = async (sql: Sql, projection: AnyProjection, events: readonly StoredEvent[]): Promise<void> => {
  const recorded = events.map(event => decode(event).recorded)
  const ids = [...new Set(recorded.map(({ id }) => id))]
  const names = Object.keys(projection.columns)
  const known = await sql<ResourceRow>(
    `select ${names.join(', ')} from ${projection.name} where id = any($1::text[])`,
    [ids],
  )
  const rows = new Map(known.map(row => [row.id, row]))
  for (const event of recorded) rows.set(event.id, fold(projection, rows.get(event.id), event))
  const changes = names.filter(name => name !== 'id').map(name => `${name} = excluded.${name}`)
  await sql(
    `${insertOf(projection.name, projection.columns)} on conflict (id) do update set ${changes.join(', ')}`,
    arraysOf(projection.columns, [...rows.values()]),
  )
}

const takeEntries = async (sql: Sql, journal: AnyJournal, events: readonly StoredEvent[]): Promise<void> => {
  const rows = events.flatMap(event => journal.rows(decode(event).recorded))
  if (rows.length === 0) return
  await sql(
    `${insertOf(journal.name, journal.columns)} on conflict (${journal.key.join(', ')}) do nothing`,
    arraysOf(journal.columns, rows),
  )
}

const feedOf = (
  database: Database,
  name: string,
  categories: readonly string[],
  write: (sql: Sql, events: readonly StoredEvent[]) => Promise<void>,
): Feed => ({
  name,
  categories,
  take: (events, position, epoch) =>
    database.transaction(async sql => {
      // The checkpoint goes first: its row lock is where a process that was replaced meets the one that replaced it.
      await moveCheckpoint(sql, name, position, epoch)
      if (events.length > 0) await write(sql, events)
    }),
})

/** Keeps the table of a projection equal to the fold of its streams. Rows and checkpoint move in one transaction. */
export const projectorOf = <E extends AnyEvent, R extends ResourceRow>(
  database: Database,
  projection: Projection<E, R>,
): Feed =>
  feedOf(database, projection.name, [projection.category], (sql, events) => takeRows(sql, projection as never, events))

export const journalOf = <E extends AnyEvent, R extends object>(database: Database, journal: Journal<E, R>): Feed =>
  feedOf(database, journal.name, journal.categories, (sql, events) => takeEntries(sql, journal as never, events))
