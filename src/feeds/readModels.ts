import { facts } from '../../projections/facts/projection.ts'
import { journals, projections } from '../../projections/index.ts'
import { fold, type Journal, type Projection, type ResourceRow } from '../../projections/projection.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { inOrderOfArrival } from './arrivalOrder.ts'
import { booksReadModel } from './booksWriter.ts'
import type { ReadModel } from './readModel.ts'
import { arraysOf, insertOf, tryCopy } from './rowArrays.ts'

/** The read models: each projection and each journal with the statements that write its table. */

/** The streams that begin before the batch, whose rows are needed; any other row is the fold of the batch alone. */
const idsWithEarlierEvents = (events: readonly Recorded<AnyEvent>[]): string[] => {
  const begun = new Set<string>()
  const earlier = new Set<string>()
  for (const { id, revision } of events) {
    if (revision === 0n) begun.add(id)
    else if (!begun.has(id)) earlier.add(id)
  }
  return [...earlier]
}

/** One row per stream. A batch is folded in memory, so each row is written once for all events of its stream. */
export const rowsOf = <E extends AnyEvent, R extends ResourceRow>(projection: Projection<E, R>): ReadModel => {
  const { name, category, columns } = projection
  const names = Object.keys(columns)
  const changes = names.filter(column => column !== 'id').map(column => `${column} = excluded.${column}`)
  // A row is never set to an earlier revision, by a writer that read it before another one wrote it.
  const upsert = `${insertOf(name, columns)} on conflict (id) do update set ${changes.join(', ')}
    where ${name}.revision < excluded.revision`
  const select = `select ${names.join(', ')} from ${name} where id = any($1::text[])`
  return {
    name,
    categories: [category],
    write: async (sql, events, copy) => {
      const ids = idsWithEarlierEvents(events)
      const existing = ids.length === 0 ? [] : await sql<R>(select, [ids])
      const rows = new Map(existing.map(row => [row.id, row]))
      for (const event of events) rows.set(event.id, fold(projection, rows.get(event.id), event as Recorded<E>))
      // The rows that were found come first.
      const folded = [...rows.values()]
      const begun = folded.slice(existing.length)
      const changed = (await tryCopy([{ table: projection, rows: begun }], copy))
        ? folded.slice(0, existing.length)
        : folded
      if (changed.length > 0) await sql(upsert, arraysOf(columns, changed))
    },
    skipEvent: async (sql, { key, revision }) => {
      const text = `update ${name} set revision = greatest(revision, $2) where id = $1 returning id`
      return (await sql(text, [key, revision])).length > 0
    },
  }
}

/** Rows for each event. A row never changes. */
export const entriesOf = <E extends AnyEvent, R extends object>(journal: Journal<E, R>): ReadModel => {
  const { name, categories, columns, key } = journal
  const insert = `${insertOf(name, columns)} on conflict (${key.join(', ')}) do nothing`
  return {
    name,
    categories,
    write: async (sql, events, copy) => {
      const rows = events.flatMap(event => journal.rows(event as Recorded<E>))
      if (rows.length === 0 || (await tryCopy([{ table: journal, rows }], copy))) return
      await sql(insert, arraysOf(columns, rows))
    },
  }
}

// Casts: a read model is given events of its own categories alone, which are those that its projection is typed for.
export const readModels: readonly ReadModel[] = [
  ...Object.values(projections).map(projection => rowsOf(projection as never)),
  ...Object.values(journals).map(journal => entriesOf(journal as never)),
  booksReadModel,
].map(model => (model.name === facts.name ? inOrderOfArrival(model) : model))
