import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { type Context, createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { realWorld } from '../../src/clockAndRandomness.ts'

/** Commands that an operator sends from the command line. */

/** The context of a command from the command line: its subject is the operating system's user. */
export const operatorContext = (tenant: string): Context => ({
  tenant,
  subject: userInfo().username,
  client: 'ledger-cli',
  authority: 'operator',
  correlationId: randomUUID(),
  commandId: randomUUID(),
  at: new Date(realWorld().now()).toISOString(),
})

/** Opens the ledger on this event store while `work` runs. */
export const withLedger = async <T>(connectionString: string, work: (ledger: Ledger) => Promise<T>): Promise<T> => {
  const store = openEventStore({ connectionString })
  try {
    return await work(createLedger(store, realWorld()))
  } finally {
    await store.close()
  }
}
