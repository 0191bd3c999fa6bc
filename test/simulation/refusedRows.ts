import { facts } from '../../projections/facts/projection.ts'
import { projections } from '../../projections/index.ts'
import type { Database, Sql } from '../../src/ports.ts'

/** Rows that a table does not take, as when a text has a character that Postgres cannot hold: until the cause is mended. */
export type RefusedRows = {
  /** The next row of this table is refused, and from then on every row of the same key. */
  readonly refuseNext: (table: string) => void
  readonly mend: () => void
  /** How many keys have been refused so far. */
  readonly count: () => number
  /** Every key of which a row was ever refused. */
  readonly keys: ReadonlySet<string>
  readonly watch: (database: Database) => Database
}

/** By table, which of its columns has the key. */
const KEY_COLUMNS: ReadonlyMap<string, number> = new Map([
  [facts.name, Object.keys(facts.columns).indexOf('subject')],
  ...Object.values(projections).map(({ name, columns }): [string, number] => [
    name,
    Object.keys(columns).indexOf('id'),
  ]),
])
export const REFUSING_TABLES: readonly string[] = [...KEY_COLUMNS.keys()]

const INSERT = /^\s*insert into (\w+) \(/
/** Such a row is refused by Postgres itself, with SQLSTATE 22P05. */
const REFUSED = String.raw`select '"\u0000"'::jsonb ->> 0`

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
      isRefused(text, values) ? sql(REFUSED) : sql(text, values)

  return {
    refuseNext: table => void awaited.add(table),
    mend: () => {
      awaited.clear()
      refused.clear()
    },
    count: () => keys.size,
    keys,
    watch: database => ({
      ...database,
      sql: watched(database.sql),
      transaction: work => database.transaction(sql => work(watched(sql))),
    }),
  }
}
