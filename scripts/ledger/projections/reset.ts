import { Command } from 'commander'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { resetTables } from '../../../src/logIdentity/tablesReset.ts'
import { openDataDirectory } from '../../../src/embedded/dataDirectory.ts'
import { startEmbeddedServices } from '../../../src/embedded/startEmbedded.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { createCleanupStack, type CleanupStack } from '../../../src/lib/cleanupStack.ts'
import { jsonOption, print, printJson, printNotice } from '../print.ts'
import { findConnections } from '../connections.ts'

const LEASE_MAX_MS = 5_000
const RUNNING = 'A service runs on this database. End every instance of it first.'

/** Starts the embedded Postgres if needed, since a service that refuses its log does not run. */
const databaseUrlOf = async (cleanup: CleanupStack): Promise<string> => {
  const { config, running } = await findConnections()
  if (running !== undefined) throw new StartupError(RUNNING)
  if (config.databaseUrl !== undefined) return config.databaseUrl
  const directory = await openDataDirectory(config.dataDir)
  cleanup.defer(() => directory.release())
  const failed = (reason: Error): void => printNotice(reason.message)
  const options = { dataDir: config.dataDir, database: true, eventStore: false, log: () => undefined, onExit: failed }
  const services = await startEmbeddedServices(options)
  cleanup.defer(services.stop)
  return services.databaseUrl ?? ''
}

const reset = async ({ json, toThisLog }: { readonly json: boolean; readonly toThisLog: boolean }): Promise<void> => {
  if (!toThisLog)
    throw new StartupError(
      'Confirm with --to-this-log. Everything in Postgres that is derived from the log will be rebuilt.',
    )
  const cleanup = createCleanupStack(error => printNotice(String(error)))
  try {
    const connectionString = await databaseUrlOf(cleanup)
    const database = openDatabase({ connectionString, applicationName: 'ledger-projections' })
    cleanup.defer(() => database.close())
    if (!(await resetTables(database, AbortSignal.timeout(LEASE_MAX_MS)))) throw new StartupError(RUNNING)
  } finally {
    await cleanup.run()
  }
  if (json) printJson({ reset: true })
  else print('The next start rebuilds the read models, checkpoints and dead letters from the log that it finds.')
}

export const resetCommand = new Command('reset')
  .description('Empties read models, checkpoints and dead letters, which the next start rebuilds from the present log.')
  .option('--to-this-log', 'required, as a confirmation: the tables then belong to the present log', false)
  .addOption(jsonOption())
  .addHelpText(
    'after',
    '\nFor a service that refuses to start because its tables are of another log: another EVENTSTORE_URL, or a store that\n' +
      'was restored from an older backup. The publisher publishes every fact of the log again, with the same ids; files of\n' +
      'exports stay. End every instance of the service first.',
  )
  .action(reset)
