import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { type Context, createLedger, type Ledger } from '../../src/commands/handle.ts'
import { realWorld } from '../../src/world.ts'

/** A command given at the command line: by whoever is logged in on this machine, in the name of nobody else. */
export const operatorContext = (tenant: string): Context => ({
  tenant,
  subject: userInfo().username,
  client: 'ledger-cli',
  authority: 'operator',
  correlationId: randomUUID(),
  commandId: randomUUID(),
  at: new Date(realWorld().now()).toISOString(),
})

/** Opens the ledger on the store of this connection string for as long as the work takes. */
export const withLedger = async <T>(connectionString: string, work: (ledger: Ledger) => Promise<T>): Promise<T> => {
  const store = openEventStore({ connectionString })
  try {
    return await work(createLedger(store, realWorld()))
  } finally {
    await store.close()
  }
}
