import { facts } from '../../projections/facts/projection.ts'
import { projections } from '../../projections/index.ts'
import type { Database, Sql } from '../../src/ports.ts'

/** Rows that Postgres refuses, like rows with a text that it cannot store, until the cause is repaired. */
export type RefusedRows = {
  /** Refuses the next row of the table, and from then on every row with its key. */
  readonly refuseNext: (table: string) => void
  readonly acceptAll: () => void
  /** The number of keys that were refused so far. */
  readonly count: () => number
  /** The keys that were refused so far. */
  readonly keys: ReadonlySet<string>
  readonly wrap: (database: Database) => Database
}

/** By table, the index of its column with the key. */
const KEY_COLUMNS: ReadonlyMap<string, number> = new Map([
  [facts.name, Object.keys(facts.columns).indexOf('subject')],
  ...Object.values(projections).map(({ name, columns }): [string, number] => [
    name,
    Object.keys(columns).indexOf('id'),
  ]),
])
export const REFUSING_TABLES: readonly string[] = [...KEY_COLUMNS.keys()]

const INSERT = /^\s*insert into (\w+) \(/
/** A statement that Postgres refuses with SQLSTATE 22P05, sent in place of the insert. */
const REFUSED_STATEMENT = String.raw`select '"\u0000"'::jsonb ->> 0`

export const createRefusedRows = (): RefusedRows => {
  const awaited = new Set<string>()
  const refused = new Map<string, Set<string>>()
  const keys = new Set<string>()

  const keysIn = (text: string, values: readonly unknown[]): readonly [table: string, keys: readonly string[]] => {
    const table = INSERT.exec(text)?.[1] ?? ''
    const column = KEY_COLUMNS.get(table)
    return [table, column === undefined ? [] : (values[column] as readonly string[])]
  }

  const isRefused = (text: string, values: readonly unknown[]): boolean => {
    if (awaited.size === 0 && refused.size === 0) return false
    const [table, written] = keysIn(text, values)
    const next = awaited.has(table) ? written.at(-1) : undefined
    if (next !== undefined) {
      awaited.delete(table)
      refused.set(table, new Set([...(refused.get(table) ?? []), next]))
      keys.add(next)
    }
    return written.some(key => refused.get(table)?.has(key))
  }

  const watched =
    (sql: Sql): Sql =>
    (text, values = []) =>
      isRefused(text, values) ? sql(REFUSED_STATEMENT) : sql(text, values)

  return {
    refuseNext: table => void awaited.add(table),
    acceptAll: () => {
      awaited.clear()
      refused.clear()
    },
    count: () => keys.size,
    keys,
    wrap: database => ({
      ...database,
      sql: watched(database.sql),
      transaction: work => database.transaction(sql => work(watched(sql))),
    }),
  }
}
