import { Readable } from 'node:stream'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { type Feed, runFeeds } from '../../src/feeds/feedLoop.ts'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import type { Database } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { StoreAddresses } from './harness.ts'

/** A store without dead letters: benchmarks park nothing. */
export const noDeadLetters = { readStream: () => Readable.from([]) }

const STATEMENT_TIMEOUT_MS = 60_000

export const openTables = async ({ databaseUrl }: StoreAddresses): Promise<Database> => {
  const database = openDatabase({ connectionString: databaseUrl, statementTimeoutMs: STATEMENT_TIMEOUT_MS })
  await createLedgerTables(database)
  return database
}

/** Runs the feeds as the service does, until each has processed the last event of the log. Returns seconds. */
export const runUntilCaughtUp = async (
  addresses: StoreAddresses,
  database: Database,
  feeds: readonly Feed[],
): Promise<number> => {
  const store = openEventStore({ connectionString: addresses.eventStoreUrl })
  const stop = new AbortController()
  try {
    const head = await store.head()
    const behind = new Set(feeds.map(({ name }) => name))
    const caughtUp = Promise.withResolvers<void>()
    const report = ({ name, position, error }: { name: string; position: bigint; error?: string }): void => {
      if (error !== undefined) caughtUp.reject(new Error(`${name}: ${error}`))
      if (position >= head) behind.delete(name)
      if (behind.size === 0) caughtUp.resolve()
    }
    const begun = performance.now()
    const running = runFeeds('bench', feeds, { store, database, world: realWorld(), report }, stop.signal)
    await caughtUp.promise
    const seconds = (performance.now() - begun) / 1000
    stop.abort()
    await running
    return seconds
  } finally {
    stop.abort()
    await store.close()
  }
}
