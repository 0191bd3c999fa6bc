import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import type { Database } from '../../src/ports.ts'
import type { Config } from '../../src/settings/config.ts'
import { type Connections, findConnections, howToStart } from './connections.ts'

/** The stores are open while `work` runs. Each function throws a StartupError where an address is not known. */

export type Stores = { readonly ledger: Ledger; readonly database: Database; readonly config: Config }

export const withLedger = async <T>(work: (ledger: Ledger, connections: Connections) => Promise<T>): Promise<T> => {
  const connections = await findConnections()
  const { config, addresses } = connections
  if (addresses.event_store === null) throw new StartupError(howToStart(config.dataDir))
  const store = openEventStore({ connectionString: addresses.event_store })
  try {
    return await work(createLedger(store, realWorld()), connections)
  } finally {
    await store.close()
  }
}

export const withDatabase = async <T>(
  name: string,
  work: (database: Database) => Promise<T>,
  options: { readonly statementTimeoutMs?: number } = {},
): Promise<T> => {
  const { config, addresses } = await findConnections()
  if (addresses.postgres === null) throw new StartupError(howToStart(config.dataDir))
  const applicationName = `ledger-${name}`
  const database = openDatabase({ connectionString: addresses.postgres, applicationName, ...options })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

export const withStores = <T>(
  name: string,
  work: (stores: Stores) => Promise<T>,
  options: { readonly statementTimeoutMs?: number } = {},
): Promise<T> =>
  withLedger((ledger, { config }) => withDatabase(name, database => work({ ledger, database, config }), options))
