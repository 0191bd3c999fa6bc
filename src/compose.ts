import { createServer } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { type Addresses, publishAddresses } from './addresses.ts'
import { openEventStore } from './adapters/eventstoredb.ts'
import { openDatabase } from './adapters/postgres.ts'
import { APPEND_DEADLINE_MS } from './commands/budgets.ts'
import { createLedger, type Ledger } from './commands/handle.ts'
import { IdSecretLost } from './commands/idSecret.ts'
import { rememberFactBase } from './compose/factBase.ts'
import { startFeeds } from './compose/feeds.ts'
import { startHttp } from './compose/http.ts'
import type { Config } from './config.ts'
import { openDataDirectory } from './embedded/dataDirectory.ts'
import { startParts } from './embedded/parts.ts'
import { Refusal } from './embedded/refusal.ts'
import { createTables } from './feeds/schema.ts'
import { type EventStore, type Log, Unavailable } from './ports.ts'
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

const POOL_MAX = 10
const STORE_POLL_MS = 500
const AT_ONCE: Starting = { signal: new AbortController().signal, onWaiting: () => undefined }

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

/**
 * Resolves when the store has answered. Until then the service runs, answers commands with 503, and says why in the log: a
 * store that starts later, or that refuses this service until an operator mends it, needs no restart.
 */
const untilAnswered = async (store: EventStore, log: Log, { signal, onWaiting }: Starting): Promise<void> => {
  for (let told = ''; !signal.aborted; await realWorld().sleep(STORE_POLL_MS, signal)) {
    try {
      await store.head()
      return
    } catch (error) {
      const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)
      if (reason === told) continue
      told = reason
      log.warn({ reason }, 'the event store does not answer yet')
      onWaiting(reason)
    }
  }
  throw new Refusal('It was ended before the event store had answered.')
}

const start = async (config: Config, releasers: Releasers, starting: Watched): Promise<Service> => {
  const embedded = isEmbedded(config)
  if (embedded) {
    const directory = await openDataDirectory(config.dataDir)
    releasers.add(() => directory.release())
  }
  const { log, place, flush } = await openLog(config)
  releasers.add(flush)
  starting.onLog(log)
  const failed = Promise.withResolvers<Error>()
  const parts = await startParts({
    dataDir: config.dataDir,
    database: config.databaseUrl === undefined,
    eventStore: config.eventStoreUrl === undefined,
    log: line => log.info({ line }, 'embedded part'),
    onExit: failed.resolve,
  })
  releasers.add(parts.stop)
  const databaseUrl = config.databaseUrl ?? parts.databaseUrl ?? ''
  const eventStoreUrl = config.eventStoreUrl ?? parts.eventStoreUrl ?? ''
  const database = openDatabase({ connectionString: databaseUrl, poolMax: POOL_MAX, applicationName: 'ledger' })
  releasers.add(() => database.close())
  const store = openEventStore({ connectionString: eventStoreUrl, appendDeadlineMs: APPEND_DEADLINE_MS })
  releasers.add(() => store.close())
  await createTables(database)
  const ledger = createLedger(store, realWorld(config.crashAt))
  if (config.roles.includes('api')) await checkIdSecret(ledger, log)
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const publicUrl = config.publicUrl ?? `http://localhost:${port}`
  const factBase = await rememberFactBase(database, { publicUrl, isSet: config.publicUrl !== undefined })
  const feeds = await startFeeds(config, { database, store, ledger, log, factBase }, releasers)
  const issuer = config.issuer ?? `http://localhost:${port}/oauth`
  await startHttp(config, { port, issuer, publicUrl, factBase, database, ledger, log, feeds }, releasers)
  const addresses: Addresses = {
    api: `http://localhost:${port}`,
    event_store: eventStoreUrl,
    postgres: databaseUrl,
    kafka: config.kafka?.brokers.join(',') ?? null,
    issuer,
    pids: { service: process.pid, ...parts.pids },
  }
  if (embedded) releasers.add(await publishAddresses(config.dataDir, addresses))
  await untilAnswered(store, log, starting)
  return { addresses, logs: place, failed: failed.promise, close: releasers.release }
}

/** Refuses to start where a repeated key would not find its first result. A store that does not answer is asked again later. */
const checkIdSecret = async (ledger: Ledger, log: Log): Promise<void> => {
  try {
    await ledger.idSecret()
  } catch (error) {
    if (error instanceof IdSecretLost) throw new Refusal(error.message)
    if (!(error instanceof Unavailable)) throw error
    log.warn({ error }, 'the secret of ids cannot be read yet')
  }
}

type OpenedLog = { readonly log: Log; readonly place: string; readonly flush: () => Promise<void> }

const openLog = async ({ dataDir, logLevel, databaseUrl }: Config): Promise<OpenedLog> => {
  // Beside real parts the log goes where a container's log goes; at a terminal it would bury what the person reads.
  const place = databaseUrl === undefined ? join(dataDir, 'ledger.log') : 'stdout'
  const destination = pino.destination({ dest: place === 'stdout' ? 1 : place, sync: false })
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
