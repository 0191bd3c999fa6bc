import { PGlite } from '@electric-sql/pglite'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import type { Database, Row } from '../../src/ports.ts'
import { type Field, messages, readReply, type Reply } from './protocol.ts'

/** Postgres compiled to WebAssembly (PGlite), in this process. It has one session, which all simulated processes share. */
export type Engine = {
  readonly query: <R extends Row = Row>(text: string, values?: readonly unknown[]) => Promise<R[]>
  /** Empties every table. */
  readonly reset: () => Promise<void>
  /** Copies the tables as they are now, and resolves with the name of the schema that has the copies. */
  readonly snapshot: () => Promise<string>
  /** Makes every table equal to its copy in the schema of a snapshot. */
  readonly restore: (schema: string) => Promise<void>
  /** Makes the schema of a snapshot available for the next one. */
  readonly release: (schema: string) => void
  /** Removes dead rows when many statements have run since the last time. No transaction may be open. */
  readonly vacuumWhenDue: () => Promise<void>
  /** Gives the time of now() in statements, in ISO 8601. */
  readonly setClock: (now: () => string) => void
}

/** Several statements in one text cannot be prepared, and for definitions of tables, which run once, it is not worth it. */
const isPreparable = (text: string, values: readonly unknown[]): boolean =>
  values.length > 0 || (!text.includes(';') && !/^\s*(create|alter|drop|set)\b/i.test(text))

/**
 * Each statement is parsed, planned and described once; later executions are one message. PGlite's own client needs five messages
 * and several times as long, and statements are most of the cost of a run.
 */
const createRunner = (engine: PGlite): Engine['query'] => {
  const prepared = new Map<string, { readonly name: string; readonly fields: readonly Field[] }>()

  const send = async (message: Buffer, known: readonly Field[] = []): Promise<Reply> => {
    const chunks: Buffer[] = []
    // The bytes are copied, because the engine reuses their memory.
    const onRawData = (bytes: Uint8Array): void => void chunks.push(Buffer.from(bytes))
    await engine.execProtocolRawStream(message, { syncToFs: false, onRawData })
    return readReply(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks), known)
  }

  const statementOf = async (text: string) => {
    const known = prepared.get(text)
    if (known !== undefined) return known
    const name = `s${prepared.size + 1}`
    const { fields } = await send(messages.prepare(name, text))
    const statement = { name, fields }
    prepared.set(text, statement)
    return statement
  }

  return async <R extends Row>(text: string, values: readonly unknown[] = []): Promise<R[]> => {
    if (!isPreparable(text, values)) return (await send(messages.query(text))).rows as R[]
    const { name, fields } = await statementOf(text)
    return (await send(messages.execute(name, values), fields)).rows as R[]
  }
}

const asDatabase = (run: Engine['query']): Database => ({
  sql: run,
  transaction: work => work(run),
  snapshot: () => Promise.reject(new Error('No snapshot is needed to create tables.')),
  withLease: () => Promise.reject(new Error('No lock is needed to create tables.')),
  close: () => Promise.resolve(),
})

/**
 * Schemas with a copy of every table, which are reused: their creation and removal for each snapshot took a third of the time of
 * all statements, and made the catalog grow.
 */
const createSnapshots = (run: Engine['query'], tables: readonly string[]) => {
  const schemas: string[] = []
  let free: string[] = []

  const create = async (): Promise<string> => {
    const schema = `snapshot_${schemas.length + 1}`
    schemas.push(schema)
    const copies = tables.map(name => `create unlogged table ${schema}.${name} as table public.${name} with no data`)
    await run([`create schema ${schema}`, ...copies].join(';'))
    return schema
  }
  return {
    take: async (): Promise<string> => {
      const schema = free.pop() ?? (await create())
      for (const name of tables) {
        await run(`delete from ${schema}.${name}`)
        await run(`insert into ${schema}.${name} table public.${name}`)
      }
      return schema
    },
    restore: async (schema: string): Promise<void> => {
      // Without triggers, as pg_restore fills tables.
      await run('begin; set local session_replication_role = replica')
      for (const name of tables) {
        await run(`delete from ${name}`)
        await run(`insert into ${name} overriding system value table ${schema}.${name}`)
      }
      await run('commit')
    },
    release: (schema: string): void => void free.push(schema),
    releaseAll: (): void => {
      free = [...schemas]
    },
  }
}

/** Every update leaves a dead row behind, which takes memory, and time in every scan. */
const STATEMENTS_PER_VACUUM = 50_000

/** Takes the place of now() of Postgres, also in the defaults of columns: the tables are created on this search path. */
const CLOCK = `
  create schema clock;
  create function clock.now() returns timestamptz stable language sql
    as $$ select current_setting('clock.time')::timestamptz $$;
  set clock.time = 'epoch';
  set search_path = public, clock, pg_catalog`
/** The statements for which the time matters. To set the clock for each other one would take a third of a run's time. */
const COMPARES_TIMES = /taken_at|reservations/

export type EngineOptions = {
  readonly statementsPerVacuum?: number
  /** Create the tables of each build, one after the other. */
  readonly tablesOf?: readonly ((database: Database) => Promise<void>)[]
}

/** Starts an engine, which takes a second or two. It serves any number of runs, one after the other. */
export const openEngine = async ({
  statementsPerVacuum = STATEMENTS_PER_VACUUM,
  tablesOf = [createLedgerTables],
}: EngineOptions = {}): Promise<Engine> => {
  const engine = await PGlite.create({ dataDir: 'memory://' })
  const runPrepared = createRunner(engine)
  let statements = 0
  let now = (): string => 'epoch'
  const runAtPresent: Engine['query'] = async (text, values) => {
    await runPrepared(`set clock.time = '${now()}'`)
    return runPrepared(text, values)
  }
  const run: Engine['query'] = (text, values) => {
    statements += 1
    return COMPARES_TIMES.test(text) ? runAtPresent(text, values) : runPrepared(text, values)
  }
  const vacuumWhenDue = async (): Promise<void> => {
    if (statements < statementsPerVacuum) return
    statements = 0
    await run('vacuum')
  }
  await run(
    'set timezone = utc; set datestyle = iso; set synchronous_commit = off; set plan_cache_mode = force_generic_plan',
  )
  await run(CLOCK)
  for (const createTables of tablesOf) await createTables(asDatabase(run))
  const actual = await run<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public' order by tablename`,
  )
  const tables = actual.map(({ name }) => name)
  // Unlogged tables need no write-ahead log, and no data has to outlive this process.
  for (const name of tables) await run(`alter table ${name} set unlogged`)
  const snapshots = createSnapshots(run, tables)
  const clear = tables.map(name => `delete from ${name}`)
  const reset = async (): Promise<void> => {
    // The previous run may have ended inside a transaction.
    await run('rollback')
    for (const statement of clear) await run(statement)
    snapshots.releaseAll()
    await vacuumWhenDue()
  }
  return {
    query: run,
    reset,
    snapshot: snapshots.take,
    restore: snapshots.restore,
    release: snapshots.release,
    vacuumWhenDue,
    setClock: clock => (now = clock),
  }
}
