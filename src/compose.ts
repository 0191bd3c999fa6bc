import { appendFile, chmod } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { type Addresses, publishAddresses } from './addressesFile.ts'
import { openEventStore } from './adapters/eventstoredb/eventStore.ts'
import { APPEND_DEADLINE_MS } from './commands/timeBudgets.ts'
import { createLedger, type Ledger } from './commands/commandHandler.ts'
import { IdSecretLost } from './commands/idSecret.ts'
import { AnotherLog, adoptLog, checkLog, type SeenFact } from './commands/logIdentity.ts'
import { openPools } from './compose/databasePools.ts'
import { rememberSchemaBaseUrl } from './compose/schemaBaseUrl.ts'
import { type FeedStates, startFeeds } from './compose/feeds.ts'
import { startHttp } from './compose/http.ts'
import type { Config } from './config.ts'
import { openDataDirectory } from './embedded/dataDirectory.ts'
import { startEmbeddedServices } from './embedded/startEmbedded.ts'
import { StartupError } from './startupError.ts'
import { createLedgerTables } from './feeds/ledgerTables.ts'
import { type Database, type Log, Unavailable } from './ports.ts'
import { createCleanupStack, type CleanupStack } from './cleanupStack.ts'
import { realWorld } from './clockAndRandomness.ts'

/** Wires the service: opens the adapters, starts the feeds of its roles and the HTTP server, and closes them in reverse order. */

export type Service = {
  readonly addresses: Addresses
  /** The file of the log, or `stdout`. */
  readonly logs: string
  /** Resolves to the reason when the service cannot go on: a dependency ended, or the log is another one. */
  readonly failed: Promise<Error>
  /** Drains requests, then closes everything in reverse order of its start. Idempotent. */
  readonly close: () => Promise<void>
}

/** Ends a start that waits, and is called with the reason of the wait. */
export type Starting = { readonly signal: AbortSignal; readonly onWaiting: (reason: string) => void }

const STORE_POLL_MS = 500
const LOG_CHECK_MS = 5_000
const UNCONTROLLED: Starting = { signal: new AbortController().signal, onWaiting: () => undefined }
/** Readable by its owner alone: the log has the names of callers, and failures. */
const LOG_MODE = 0o600

/** Starts the service. When a step fails, everything that was started before is closed. */
export const compose = async (config: Config, starting: Starting = UNCONTROLLED): Promise<Service> => {
  let log: Log | undefined
  const cleanup = createCleanupStack(error => log?.error({ error }, 'a resource did not close'))
  try {
    const onLog = (opened: Log): void => void (log = opened)
    return await start(config, cleanup, { ...starting, onLog })
  } catch (error) {
    await cleanup.run()
    throw error
  }
}

/** Whether an embedded dependency has its data in the data directory: then the directory belongs to this process alone. */
const isEmbedded = ({ databaseUrl, eventStoreUrl, issuer }: Config): boolean =>
  databaseUrl === undefined || eventStoreUrl === undefined || issuer === undefined

type StartingWithLog = Starting & { readonly onLog: (log: Log) => void }

/** Throws StartupError for tables of another log, and for a log whose idempotency records cannot be found any more. */
const checkLogIdentity = async (ledger: Ledger, database: Database): Promise<void> => {
  try {
    await adoptLog(ledger, database)
  } catch (error) {
    if (error instanceof AnotherLog || error instanceof IdSecretLost) throw new StartupError(error.message)
    throw error
  }
}

/** Resolves to whether the work was done; false when a dependency did not answer. */
const hasAnswered = async (work: Promise<void>, onUnavailable: (reason: string) => void): Promise<boolean> => {
  try {
    await work
    return true
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    onUnavailable(error.cause instanceof Error ? error.cause.message : error.message)
    return false
  }
}

/**
 * Resolves when the store has answered. Until then the service runs, responds to commands with 503, and logs the reason: a
 * store that starts later, or that an operator has to repair, needs no restart of the service.
 */
const untilAnswered = async (check: () => Promise<void>, log: Log, { signal, onWaiting }: Starting): Promise<void> => {
  let reported = ''
  const report = (reason: string): void => {
    if (reason === reported) return
    reported = reason
    log.warn({ reason }, 'the event store does not answer yet')
    onWaiting(reason)
  }
  while (!signal.aborted) {
    if (await hasAnswered(check(), report)) return
    await realWorld().sleep(STORE_POLL_MS, signal)
  }
  throw new StartupError('It was ended before the event store had answered.')
}

/** Ends the service when the store is restored or exchanged while it runs, because the tables are then of another log. */
const watchLog = (ledger: Ledger, database: Database, onRefused: (reason: Error) => void): (() => Promise<void>) => {
  const stop = new AbortController()
  const { store, world } = ledger
  const watch = async (): Promise<void> => {
    let seen: SeenFact | undefined
    while (!stop.signal.aborted) {
      await world.sleep(LOG_CHECK_MS, stop.signal)
      try {
        if (!stop.signal.aborted) seen = await checkLog({ database, store }, seen)
      } catch (error) {
        if (error instanceof AnotherLog) return onRefused(error)
      }
    }
  }
  const watching = watch()
  return () => {
    stop.abort()
    return watching
  }
}

/** Opens the event store and Postgres; each is embedded where no address is set. */
const openDependencies = async (config: Config, cleanup: CleanupStack, log: Log, onExit: (reason: Error) => void) => {
  const embedded = await startEmbeddedServices({
    dataDir: config.dataDir,
    database: config.databaseUrl === undefined,
    eventStore: config.eventStoreUrl === undefined,
    log: line => log.info({ line }, 'embedded part'),
    onExit,
  })
  cleanup.defer(embedded.stop)
  const databaseUrl = config.databaseUrl ?? embedded.databaseUrl ?? ''
  const eventStoreUrl = config.eventStoreUrl ?? embedded.eventStoreUrl ?? ''
  const pools = openPools(databaseUrl, cleanup)
  const store = openEventStore({ connectionString: eventStoreUrl, appendDeadlineMs: APPEND_DEADLINE_MS })
  cleanup.defer(() => store.close())
  await createLedgerTables(pools.database)
  const ledger = createLedger(store, realWorld(config.crashAt))
  return { ...pools, ledger, databaseUrl, eventStoreUrl, pids: embedded.pids }
}

type ServiceDependencies = Awaited<ReturnType<typeof openDependencies>> & { readonly log: Log }
type Feeds = { readonly values: () => ReturnType<FeedStates['values']> }

/** Starts the HTTP server, and publishes the addresses. */
const serve = async (config: Config, dependencies: ServiceDependencies, feeds: Feeds, cleanup: CleanupStack) => {
  const { database, databaseUrl, eventStoreUrl, pids } = dependencies
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const publicUrl = config.publicUrl ?? `http://localhost:${port}`
  const schemaBaseUrl = await rememberSchemaBaseUrl(database, { publicUrl, isSet: config.publicUrl !== undefined })
  const issuer = config.issuer ?? `http://localhost:${port}/oauth`
  await startHttp(config, { ...dependencies, port, issuer, publicUrl, schemaBaseUrl, feeds }, cleanup)
  const addresses: Addresses = {
    api: `http://localhost:${port}`,
    event_store: eventStoreUrl,
    postgres: databaseUrl,
    kafka: config.kafka?.brokers.join(',') ?? null,
    issuer,
    pids: { service: process.pid, ...pids },
  }
  if (isEmbedded(config)) cleanup.defer(await publishAddresses(config.dataDir, addresses))
  return { addresses, schemaBaseUrl }
}

const start = async (config: Config, cleanup: CleanupStack, starting: StartingWithLog): Promise<Service> => {
  if (isEmbedded(config)) {
    const directory = await openDataDirectory(config.dataDir)
    cleanup.defer(() => directory.release())
  }
  const { log, place, flush } = await openLog(config)
  cleanup.defer(flush)
  starting.onLog(log)
  const failed = Promise.withResolvers<Error>()
  const dependencies = { ...(await openDependencies(config, cleanup, log, failed.resolve)), log }
  const { ledger, database, feedsDatabase } = dependencies
  const check = (): Promise<void> => checkLogIdentity(ledger, database)
  await hasAnswered(check(), reason => log.warn({ reason }, 'the event store does not answer yet'))
  // Feeds start once the identity of the log is checked. At shutdown they end after the HTTP server, whose requests may wait
  // for them.
  let states: FeedStates = new Map()
  const feedCleanup = createCleanupStack(error => log.error({ error }, 'a feed did not end'))
  cleanup.defer(feedCleanup.run)
  const { addresses, schemaBaseUrl } = await serve(config, dependencies, { values: () => states.values() }, cleanup)
  await untilAnswered(check, log, starting)
  states = await startFeeds(
    config,
    { database: feedsDatabase, store: ledger.store, ledger, log, schemaBaseUrl },
    feedCleanup,
  )
  const refuse = (reason: Error): void => {
    log.error({ reason: reason.message }, 'the log is another one')
    failed.resolve(reason)
  }
  feedCleanup.defer(watchLog(ledger, database, refuse))
  return { addresses, logs: place, failed: failed.promise, close: cleanup.run }
}

type OpenedLog = { readonly log: Log; readonly place: string; readonly flush: () => Promise<void> }

const openLog = async ({ dataDir, logLevel, databaseUrl }: Config): Promise<OpenedLog> => {
  // With an external database the log goes to stdout, as containers expect; at a terminal it would hide the addresses.
  const place = databaseUrl === undefined ? join(dataDir, 'ledger.log') : 'stdout'
  const isFile = place !== 'stdout'
  const destination = pino.destination({ dest: isFile ? place : 1, sync: false, ...(isFile ? { mode: LOG_MODE } : {}) })
  // `mode` applies to a new file; the file of an older version may be readable by others.
  if (isFile) await appendFile(place, '', { mode: LOG_MODE }).then(() => chmod(place, LOG_MODE))
  const log = pino({ level: logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return { log, place, flush: async () => destination.flushSync() }
}

const freePort = (host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, host, () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
