import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { type Context, createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { TENANT_PATTERN } from '../../src/identity/principal.ts'
import { StartupError } from '../../src/lib/startupError.ts'

/** Commands that an operator sends from the command line. */

/** Throws a StartupError for a text that is the name of no tenant. */
export const checkedTenant = (tenant: string): string => {
  if (TENANT_PATTERN.test(tenant)) return tenant
  throw new StartupError('A tenant is 1 to 63 characters of a-z, 0-9 and -, not beginning with -.')
}

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
