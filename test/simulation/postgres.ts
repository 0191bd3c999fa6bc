import { PGlite } from '@electric-sql/pglite'
import { createTables } from '../../src/feeds/schema.ts'
import type { Database, Row } from '../../src/ports.ts'
import { timestamp } from '../../src/adapters/postgres/types.ts'

/** Postgres itself, compiled to WebAssembly, in this process: one session, which the simulated database shares out. */
export type Engine = {
  readonly run: <R extends Row = Row>(text: string, values?: readonly unknown[]) => Promise<R[]>
  /** Empties every table. */
  readonly reset: () => Promise<void>
  /** The read models and what is kept beside them. */
  readonly tables: readonly string[]
}

const INT8 = 20
const DATE = 1082
const INT8_ARRAY = 1016
const TIMESTAMPTZ = 1184

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

const element = (value: unknown): string =>
  value === null || value === undefined ? 'NULL' : `"${asText(value).replaceAll(/["\\\\]/g, String.raw`\$&`)}"`

const asText = (value: unknown): string => {
  if (value instanceof Uint8Array) return String.raw`\x` + Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return `{${value.map(element).join(',')}}`
  if (typeof value === 'string') return value
  return typeof value === 'bigint' ? value.toString() : JSON.stringify(value)
}

/** A value as a literal without a type, which Postgres types by its place as it does a parameter. */
const literal = (value: unknown): string => (value === null || value === undefined ? 'NULL' : quoted(asText(value)))

/**
 * Statements with values are prepared once and then executed: parsing and planning would take most of the time, and one
 * message to the engine takes half the time of the five that the extended protocol needs.
 */
const createStatements = () => {
  const names = new Map<string, string>()
  return (text: string, values: readonly unknown[]): string => {
    const known = names.get(text)
    const name = known ?? `s${names.size + 1}`
    names.set(text, name)
    const execute = `execute ${name}(${values.map(literal).join(', ')})`
    return known === undefined ? `prepare ${name} as ${text}; ${execute}` : execute
  }
}

const options = {
  parsers: {
    [INT8]: (text: string) => BigInt(text),
    [INT8_ARRAY]: (text: string) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(BigInt)),
    [DATE]: (text: string) => text,
    [TIMESTAMPTZ]: timestamp,
  },
}

const asDatabase = (run: Engine['run']): Database => ({
  sql: run,
  transaction: work => work(run),
  snapshot: () => Promise.reject(new Error('No snapshot is needed to create tables.')),
  exclusively: () => Promise.reject(new Error('No lock is needed to create tables.')),
  close: () => Promise.resolve(),
})

/** Takes a second or two; one serves any number of runs, one after the other. */
export const openEngine = async (): Promise<Engine> => {
  const engine = await PGlite.create({ dataDir: 'memory://' })
  const prepared = createStatements()
  const run = async <R extends Row = Row>(text: string, values: readonly unknown[] = []): Promise<R[]> => {
    const statement = values.length === 0 ? text : prepared(text, values)
    const results = await engine.exec(statement, options)
    return (results.at(-1)?.rows ?? []) as R[]
  }
  await run(
    'set timezone = utc; set datestyle = iso; set synchronous_commit = off; set plan_cache_mode = force_generic_plan',
  )
  await createTables(asDatabase(run))
  const found = await run<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public' order by tablename`,
  )
  const tables = found.map(({ name }) => name)
  // Nothing of a run outlives its process, so nothing is written ahead.
  for (const name of tables) await run(`alter table ${name} set unlogged`)
  const clear = tables.map(name => `delete from ${name}`).join(';')
  const reset = async (): Promise<void> => {
    // The run before may have ended inside a transaction.
    await run('rollback')
    const left = await run<{ name: string }>(`select nspname as name from pg_namespace where nspname like 'snapshot%'`)
    for (const { name } of left) await run(`drop schema ${name} cascade`)
    await run(clear)
  }
  return { run, reset, tables }
}
