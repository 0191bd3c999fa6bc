import { appendFile, chmod } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { type Addresses, publishAddresses } from './addresses.ts'
import { openEventStore } from './adapters/eventstoredb/eventStore.ts'
import { openDatabase } from './adapters/postgres/database.ts'
import { APPEND_DEADLINE_MS } from './commands/budgets.ts'
import { createLedger, type Ledger } from './commands/handle.ts'
import { IdSecretLost } from './commands/idSecret.ts'
import { AnotherLog, adoptLog, checkLog } from './commands/logIdentity.ts'
import { rememberFactBase } from './compose/factBase.ts'
import { type FeedStates, startFeeds } from './compose/feeds.ts'
import { startHttp } from './compose/http.ts'
import type { Config } from './config.ts'
import { openDataDirectory } from './embedded/dataDirectory.ts'
import { startEmbeddedServices } from './embedded/startEmbedded.ts'
import { StartupError } from './startupError.ts'
import { createTables } from './feeds/schema.ts'
import { TAIL_POOL_MAX } from './http/endpoints.ts'
import { type Database, type Log, Unavailable } from './ports.ts'
import { createReleasers, type Releasers } from './releasers.ts'
import { realWorld } from './world.ts'

export type Service = {
  readonly addresses: Addresses
  readonly logs: string
  /** Settles with the reason when a part is gone for good. */
  readonly failed: Promise<Error>
  /** Drains, then ends everything that was started, newest first. Twice is once. */
  readonly close: () => Promise<void>
}

/** How a start that takes its time is ended, and what it waits for. */
export type Starting = { readonly signal: AbortSignal; readonly onWaiting: (reason: string) => void }

/** Requests, feeds and event streams have connections of their own: none of them can use up those of the others. */
const REQUESTS_POOL_MAX = 10
const FEEDS_POOL_MAX = 8

const STORE_POLL_MS = 500
const LOG_LOOK_MS = 1_000
const AT_ONCE: Starting = { signal: new AbortController().signal, onWaiting: () => undefined }
/** Readable by its owner alone: it tells who calls, and what fails. */
const LOG_MODE = 0o600

/** Builds the service of this configuration and starts it. All that was started is ended when a later step fails. */
export const compose = async (config: Config, starting: Starting = AT_ONCE): Promise<Service> => {
  let log: Log | undefined
  const releasers = createReleasers(error => log?.error({ error }, 'a part did not close'))
  try {
    const onLog = (opened: Log): void => void (log = opened)
    return await start(config, releasers, { ...starting, onLog })
  } catch (error) {
    await releasers.release()
    throw error
  }
}

/** Whether anything is kept in the data directory: then it belongs to this process alone. */
const isEmbedded = ({ databaseUrl, eventStoreUrl, issuer }: Config): boolean =>
  databaseUrl === undefined || eventStoreUrl === undefined || issuer === undefined

type Watched = Starting & { readonly onLog: (log: Log) => void }

/** Refuses tables of another log, and a log in which a repeated key would not find its first result. */
const checkServed = async (ledger: Ledger, database: Database): Promise<void> => {
  try {
    await adoptLog(ledger, database)
  } catch (error) {
    if (error instanceof AnotherLog || error instanceof IdSecretLost) throw new StartupError(error.message)
    throw error
  }
}

/** Whether the work was done; false when a part did not answer. */
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
 * Resolves when the store has answered. Until then the service runs, answers commands with 503, and says why in the log: a
 * store that starts later, or that refuses this service until an operator mends it, needs no restart.
 */
const untilAnswered = async (check: () => Promise<void>, log: Log, { signal, onWaiting }: Starting): Promise<void> => {
  let told = ''
  const tell = (reason: string): void => {
    if (reason === told) return
    told = reason
    log.warn({ reason }, 'the event store does not answer yet')
    onWaiting(reason)
  }
  while (!signal.aborted) {
    if (await hasAnswered(check(), tell)) return
    await realWorld().sleep(STORE_POLL_MS, signal)
  }
  throw new StartupError('It was ended before the event store had answered.')
}

/** A store that is restored or exchanged under a service that runs ends it: it must not go on with tables of another log. */
const watchLog = (ledger: Ledger, database: Database, onRefused: (reason: Error) => void): (() => Promise<void>) => {
  const stop = new AbortController()
  const { store, world } = ledger
  const watch = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await world.sleep(LOG_LOOK_MS, stop.signal)
      try {
        if (!stop.signal.aborted) await checkLog({ database, store })
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

const openPools = (connectionString: string, releasers: Releasers) => {
  const open = (applicationName: string, poolMax: number): Database => {
    const database = openDatabase({ connectionString, poolMax, applicationName })
    releasers.add(() => database.close())
    return database
  }
  return {
    database: open('ledger', REQUESTS_POOL_MAX),
    feedsDatabase: open('ledger-feeds', FEEDS_POOL_MAX),
    streams: open('ledger-streams', TAIL_POOL_MAX),
  }
}

/** The event store and Postgres, each embedded where no address is set. */
const openParts = async (config: Config, releasers: Releasers, log: Log, onExit: (reason: Error) => void) => {
  const parts = await startEmbeddedServices({
    dataDir: config.dataDir,
    database: config.databaseUrl === undefined,
    eventStore: config.eventStoreUrl === undefined,
    log: line => log.info({ line }, 'embedded part'),
    onExit,
  })
  releasers.add(parts.stop)
  const databaseUrl = config.databaseUrl ?? parts.databaseUrl ?? ''
  const eventStoreUrl = config.eventStoreUrl ?? parts.eventStoreUrl ?? ''
  const pools = openPools(databaseUrl, releasers)
  const store = openEventStore({ connectionString: eventStoreUrl, appendDeadlineMs: APPEND_DEADLINE_MS })
  releasers.add(() => store.close())
  await createTables(pools.database)
  const ledger = createLedger(store, realWorld(config.crashAt))
  return { ...pools, ledger, databaseUrl, eventStoreUrl, pids: parts.pids }
}

type ServiceDependencies = Awaited<ReturnType<typeof openParts>> & { readonly log: Log }
type Feeds = { readonly values: () => ReturnType<FeedStates['values']> }

/** Opens the API, and says where everything is. */
const serve = async (config: Config, parts: ServiceDependencies, feeds: Feeds, releasers: Releasers) => {
  const { database, databaseUrl, eventStoreUrl, pids } = parts
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const publicUrl = config.publicUrl ?? `http://localhost:${port}`
  const factBase = await rememberFactBase(database, { publicUrl, isSet: config.publicUrl !== undefined })
  const issuer = config.issuer ?? `http://localhost:${port}/oauth`
  await startHttp(config, { ...parts, port, issuer, publicUrl, factBase, feeds }, releasers)
  const addresses: Addresses = {
    api: `http://localhost:${port}`,
    event_store: eventStoreUrl,
    postgres: databaseUrl,
    kafka: config.kafka?.brokers.join(',') ?? null,
    issuer,
    pids: { service: process.pid, ...pids },
  }
  if (isEmbedded(config)) releasers.add(await publishAddresses(config.dataDir, addresses))
  return { addresses, factBase }
}

const start = async (config: Config, releasers: Releasers, starting: Watched): Promise<Service> => {
  if (isEmbedded(config)) {
    const directory = await openDataDirectory(config.dataDir)
    releasers.add(() => directory.release())
  }
  const { log, place, flush } = await openLog(config)
  releasers.add(flush)
  starting.onLog(log)
  const failed = Promise.withResolvers<Error>()
  const parts = { ...(await openParts(config, releasers, log, failed.resolve)), log }
  const { ledger, database, feedsDatabase } = parts
  const check = (): Promise<void> => checkServed(ledger, database)
  await hasAnswered(check(), reason => log.warn({ reason }, 'the event store does not answer yet'))
  // Feeds begin when the log is known to be theirs, and end after the requests that wait for them.
  let states: FeedStates = new Map()
  const ofFeeds = createReleasers(error => log.error({ error }, 'a feed did not end'))
  releasers.add(ofFeeds.release)
  const { addresses, factBase } = await serve(config, parts, { values: () => states.values() }, releasers)
  await untilAnswered(check, log, starting)
  states = await startFeeds(config, { database: feedsDatabase, store: ledger.store, ledger, log, factBase }, ofFeeds)
  const refuse = (reason: Error): void => {
    log.error({ reason: reason.message }, 'the log is another one')
    failed.resolve(reason)
  }
  ofFeeds.add(watchLog(ledger, database, refuse))
  return { addresses, logs: place, failed: failed.promise, close: releasers.release }
}

type OpenedLog = { readonly log: Log; readonly place: string; readonly flush: () => Promise<void> }

const openLog = async ({ dataDir, logLevel, databaseUrl }: Config): Promise<OpenedLog> => {
  // Beside real parts the log goes where a container's log goes; at a terminal it would bury what the person reads.
  const place = databaseUrl === undefined ? join(dataDir, 'ledger.log') : 'stdout'
  const isFile = place !== 'stdout'
  const destination = pino.destination({ dest: isFile ? place : 1, sync: false, ...(isFile ? { mode: LOG_MODE } : {}) })
  // The mode is that of a new file; one that an older version wrote may be open to others.
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
