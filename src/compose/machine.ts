import type { Server } from 'node:net'
import { type Addresses, publishAddresses } from './addressesFile.ts'
import { type CleanupStack, createCleanupStack } from '../lib/cleanupStack.ts'
import type { Config } from '../settings/config.ts'
import { openDataDirectory } from '../embedded/dataDirectory.ts'
import { holdFreePort, holdPort } from '../embedded/freePorts.ts'
import { type RequestedServices, startEmbeddedServices } from '../embedded/startEmbedded.ts'
import { StartupError } from '../lib/startupError.ts'
import type { Logger } from '../ports.ts'
import { openOperatorPort } from './operatorPort.ts'
import { openLog } from './serviceLog.ts'

/** What a service has once, in however many processes: data directory, embedded services, port, addresses. */

/** Whether an embedded dependency uses the data directory, which belongs to this service alone then. */
export const isEmbedded = ({ databaseUrl, eventStoreUrl, issuer }: Config): boolean =>
  databaseUrl === undefined || eventStoreUrl === undefined || issuer === undefined

type Start<T> = (cleanup: CleanupStack, onLog: (logger: Logger) => void) => Promise<T>

/** Rejects when the signal aborts. */
export const whenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const abort = (): void => reject(new StartupError('The start was interrupted.'))
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })

/** Starts a service. When a step fails, or the signal aborts, everything that was started before is closed. */
export const closingOnFailure = async <T>(start: Start<T>, signal: AbortSignal): Promise<T> => {
  let logger: Logger | undefined
  const cleanup = createCleanupStack(error => logger?.error({ error }, 'failed to close a resource'))
  try {
    // A step may wait for a dependency that never answers.
    return await Promise.race([start(cleanup, opened => void (logger = opened)), whenAborted(signal)])
  } catch (error) {
    await cleanup.run()
    throw error
  }
}

/** Takes the data directory where it is needed, and opens the log. */
export const openDirectoryAndLog = async (config: Config, cleanup: CleanupStack, processName?: string) => {
  if (isEmbedded(config)) {
    const directory = await openDataDirectory(config.dataDir).catch((error: unknown) => {
      throw error instanceof StartupError
        ? new StartupError(`${error.message} To use a different directory, set LEDGER_DATA_DIR.`, error)
        : error
    })
    cleanup.defer(() => directory.release())
  }
  const { logger, place, flush } = await openLog(config, processName)
  cleanup.defer(flush)
  return { logger, place }
}

export type Stores = {
  /** For the processes of the service. */
  readonly databaseUrl: string
  /** For programs of others: never a Unix socket of the embedded Postgres. */
  readonly publishedDatabaseUrl: string
  readonly eventStoreUrl: string
  /** Of the embedded ones. */
  readonly pids: Readonly<Record<string, number>>
}

/** The addresses of the event store and Postgres; each is embedded where no address is set. */
export const openStores = async (
  config: Config,
  cleanup: CleanupStack,
  logger: Logger,
  notices: Pick<RequestedServices, 'onExit' | 'onOutage'>,
): Promise<Stores> => {
  const embedded = await startEmbeddedServices({
    dataDir: config.dataDir,
    database: config.databaseUrl === undefined,
    eventStore: config.eventStoreUrl === undefined,
    log: line => logger.info({ line }, 'output from an embedded service'),
    ...notices,
  })
  cleanup.defer(embedded.stop)
  return {
    databaseUrl: config.databaseUrl ?? embedded.ownDatabaseUrl ?? '',
    publishedDatabaseUrl: config.databaseUrl ?? embedded.databaseUrl ?? '',
    eventStoreUrl: config.eventStoreUrl ?? embedded.eventStoreUrl ?? '',
    pids: embedded.pids,
  }
}

/** Where the HTTP server will listen. */
export type ListeningPlace = {
  readonly port: number
  /** Holds the port if it was chosen for PORT=0. */
  readonly socket?: Server
}

/**
 * Chooses the port for PORT=0, and holds it until the HTTP server takes its socket over, so that no other program does.
 * Any other port is tried before the embedded services start. Rejects with the system error.
 */
export const chooseListeningPlace = async (
  { host, port }: Pick<Config, 'host' | 'port'>,
  cleanup: CleanupStack,
): Promise<ListeningPlace> => {
  if (port !== 0) {
    const { release } = await holdPort(port, host)
    await release()
    return { port }
  }
  const held = await holdFreePort(host)
  cleanup.defer(held.release)
  return held
}

/** Opens the operators' port unless it is off. Resolves to the URL of the metrics, which `text` makes, or to null. */
export const serveMetrics = async (
  { metrics }: Pick<Config, 'metrics'>,
  cleanup: CleanupStack,
  text: () => Promise<string>,
): Promise<string | null> => {
  if (metrics === undefined) return null
  const { address, close } = await openOperatorPort(metrics, text)
  cleanup.defer(close)
  return address
}

export const publicUrlOf = ({ publicUrl }: Config, port: number): string => publicUrl ?? `http://localhost:${port}`

export const issuerOf = ({ issuer }: Config, port: number): string => issuer ?? `http://localhost:${port}/oauth`

type Parts = Pick<Addresses, 'metrics'> & {
  readonly port: number
  readonly stores: Stores
  /** Of the processes of the service itself. */
  readonly pids: Addresses['pids']
}

export const addressesOf = (config: Config, { port, stores, pids, metrics }: Parts): Addresses => ({
  api: `http://localhost:${port}`,
  event_store: stores.eventStoreUrl,
  postgres: stores.publishedDatabaseUrl,
  kafka: config.kafka?.brokers.join(',') ?? null,
  issuer: issuerOf(config, port),
  metrics,
  pids: { ...pids, ...stores.pids },
})

/** Publishes the addresses for the commands on this machine, until the service ends. */
export const publish = async (config: Config, addresses: Addresses, cleanup: CleanupStack): Promise<void> => {
  if (isEmbedded(config)) cleanup.defer(await publishAddresses(config.dataDir, addresses))
}
