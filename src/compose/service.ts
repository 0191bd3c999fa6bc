import type { Server } from 'node:net'
import { openEventStore } from '../adapters/eventstoredb/eventStore.ts'
import { createCleanupStack, type CleanupStack } from '../lib/cleanupStack.ts'
import { realWorld } from '../lib/clockAndRandomness.ts'
import { createLedger, type Ledger } from '../commands/commandHandler.ts'
import { adoptLog, checkLog, isMismatch, type SeenFact } from '../logIdentity/logIdentity.ts'
import { checkVocabulary, TooOld } from '../logIdentity/vocabulary.ts'
import { openTenantBytes } from '../commands/quotas/tenantBytes.ts'
import { APPEND_DEADLINE_MS } from '../settings/timeBudgets.ts'
import type { Config } from '../settings/config.ts'
import { createLedgerTables } from '../feeds/ledgerTables.ts'
import { warningOf } from '../settings/insecureSettings.ts'
import { type Database, type Logger, Unavailable } from '../ports.ts'
import { createTables } from '../schema/tables.ts'
import { StartupError } from '../lib/startupError.ts'
import { metricsText } from '../lib/metrics.ts'
import { sleep } from '../lib/time.ts'
import { openPools, poolSizesOf } from './databasePools.ts'
import {
  createOutageNotices,
  type DependencyNames,
  dependencyNames,
  type Notify,
  reasonOf,
  reportingRefusals,
  reportingWait,
  startRefusal,
} from './dependencyNotices.ts'
import type { FeedSettings, FeedStates } from './feeds.ts'
import type { Addresses } from './addressesFile.ts'
import {
  addressesOf,
  chooseListeningPlace,
  closingOnFailure,
  issuerOf,
  openDirectoryAndLog,
  openStores,
  publicUrlOf,
  publish,
  serveMetrics,
  whenAborted,
} from './machine.ts'
import { observeProcess } from './processMetrics.ts'
import { recordStart } from './processRecord.ts'
import { observeService } from './serviceMetrics.ts'
import { hasSigningKey } from './signingKey.ts'
import { rememberSchemaBaseUrl } from './schemaBaseUrl.ts'
import { withTracedAppends } from './tracedStore.ts'
import type { Siblings } from './siblings.ts'

/** The composition of the service: `compose` for one process; with several, src/cluster calls `startService` in each. */

/** `signal` ends a start that waits. */
export type Starting = {
  readonly signal: AbortSignal
  /** A sentence about a dependency that a start waits for. */
  readonly onWaiting: Notify
  readonly onOutage: Notify
}

export type Service = {
  readonly addresses: Addresses
  readonly logs: string
  /** Resolves to the reason when the service cannot continue: a dependency ended, or the event log is another. */
  readonly failed: Promise<Error>
  /** Reports that it is not ready, and resolves after SHUTDOWN_DELAY, until which it continues to serve. */
  readonly drain: () => Promise<void>
  /** Waits for requests in progress, then closes everything in reverse order of its start. Idempotent. */
  readonly close: () => Promise<void>
}

const UNCONTROLLED: Starting = {
  signal: new AbortController().signal,
  onWaiting: () => undefined,
  onOutage: () => undefined,
}

/** Starts the service. When a step fails, everything that was started before is closed. */
export const compose = (config: Config, starting: Starting = UNCONTROLLED): Promise<Service> =>
  closingOnFailure((cleanup, onLog) => start(config, cleanup, { ...starting, onLog }), starting.signal)

type StartingWithLog = Starting & { readonly onLog: (logger: Logger) => void }

const start = async (config: Config, cleanup: CleanupStack, starting: StartingWithLog): Promise<Service> => {
  const { logger, place } = await openDirectoryAndLog(config, cleanup)
  starting.onLog(logger)
  const failed = Promise.withResolvers<Error>()
  const listening = await chooseListeningPlace(config, cleanup)
  observeProcess()
  const metrics = await serveMetrics(config, cleanup, () => metricsText({ process: 'service' }))
  const stores = await openStores(config, cleanup, logger, {
    onExit: failed.resolve,
    onOutage: starting.onOutage,
  })
  const addresses = addressesOf(config, { port: listening.port, stores, metrics, pids: { service: process.pid } })
  const onListening = (): Promise<void> => publish(config, addresses, cleanup)
  const draining = new AbortController()
  await startService(
    {
      ...{ config, logger, ...stores, ...listening },
      ...{ draining: draining.signal, onListening, onRefused: failed.resolve },
    },
    cleanup,
    starting,
  )
  const drain = (): Promise<void> => {
    draining.abort()
    return sleep(config.shutdownDelayMs)
  }
  return { addresses, logs: place, failed: failed.promise, drain, close: cleanup.run }
}

export type ServiceOptions = {
  readonly config: Config
  readonly logger: Logger
  readonly databaseUrl: string
  readonly eventStoreUrl: string
  readonly port: number
  /** Holds the port, for the HTTP server to take it over; absent where the server binds the port itself. */
  readonly socket?: Server
  /** The other processes of the service; absent where this process is all of it. */
  readonly siblings?: Siblings
  /** Aborts when the service is going to end: from then on it is not ready. */
  readonly draining: AbortSignal
  /** Called when the HTTP server listens, which may be long before the event store answers. */
  readonly onListening?: () => Promise<void>
  /** Called when the service cannot continue, because event log and tables do not match. */
  readonly onRefused: (reason: Error) => void
}

const STORE_POLL_MS = 500
const LOG_CHECK_MS = 5_000

/**
 * Throws StartupError for a log that this build is too old for, for tables of another log, and for a log whose idempotency
 * records cannot be found any more.
 */
const checkLogIdentity = async (ledger: Ledger, database: Database): Promise<void> => {
  try {
    await checkVocabulary(ledger.store)
    await adoptLog(ledger, database)
  } catch (error) {
    if (error instanceof TooOld || isMismatch(error)) throw new StartupError(error.message)
    throw error
  }
}

/** Resolves to whether the work was done; false when a dependency did not answer. */
const hasAnswered = async (work: Promise<void>, onUnavailable: (error: Unavailable) => void): Promise<boolean> => {
  try {
    await work
    return true
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    onUnavailable(error)
    return false
  }
}

/** Until the store has answered the service runs, refuses commands with 503 and logs why; it needs no restart. */
const untilAnswered = async (
  check: () => Promise<void>,
  logger: Logger,
  { signal, onWaiting, names }: Named,
): Promise<void> => {
  let reported = ''
  const report = (error: Unavailable): void => {
    const reason = reasonOf(error, names)
    if (reason === reported) return
    reported = reason
    logger.warn({ reason }, 'the event store is not responding yet')
    onWaiting(`Waiting for ${names['event store']}: ${reason}`)
  }
  while (!(await hasAnswered(check(), report))) {
    await realWorld().sleep(STORE_POLL_MS, signal)
    signal.throwIfAborted()
  }
}

/** Ends the service when the store is restored or exchanged, or has lost its secret. */
const watchLog = (ledger: Ledger, database: Database, onRefused: (reason: Error) => void): (() => Promise<void>) => {
  const stop = new AbortController()
  const { store, world } = ledger
  const watch = async (): Promise<void> => {
    let seen: SeenFact | undefined
    while (!stop.signal.aborted) {
      await world.sleep(LOG_CHECK_MS, stop.signal)
      try {
        if (!stop.signal.aborted) seen = await checkLog({ database, store, world }, seen)
      } catch (error) {
        if (isMismatch(error)) return onRefused(error)
      }
    }
  }
  const watching = watch()
  return () => {
    stop.abort()
    return watching
  }
}

const openDependencies = async (
  options: ServiceOptions,
  cleanup: CleanupStack,
  onUnanswered: (error: Unavailable) => void,
) => {
  const { config, logger, databaseUrl, eventStoreUrl, siblings } = options
  const pools = openPools(databaseUrl, poolSizesOf(siblings?.apiProcesses ?? 1), cleanup)
  const opened = openEventStore({ connectionString: eventStoreUrl, appendDeadlineMs: APPEND_DEADLINE_MS })
  const store = withTracedAppends(opened)
  cleanup.defer(() => store.close())
  await createLedgerTables(pools.database, onUnanswered)
  await createTables(pools.database, 'evidence')
  const apiProcesses = siblings?.apiProcesses ?? 1
  const world = realWorld(config.crashAt)
  const onFailure = (error: unknown): void =>
    logger.warn({ error }, 'cannot share stored-byte counts with other instances; using local counts and retrying')
  const bytesPerDay = config.tenantBytesPerDay
  const tenantBytes = openTenantBytes({ database: pools.database, world, bytesPerDay, onFailure })
  cleanup.defer(tenantBytes.close)
  const ledger = { ...createLedger(store, world, tenantBytes), hasSiblings: apiProcesses > 1 }
  return { ...pools, ledger }
}

/** Processes of the API do without these modules. */
const loadFeeds = () =>
  Promise.all([import('./feeds.ts'), import('./evidence.ts'), import('./rebuilds.ts'), import('./lagMetrics.ts')])

type Dependencies = Awaited<ReturnType<typeof openDependencies>>

/** The HTTP server; none in a process whose siblings serve the health endpoints with those of the API. */
const serve = async (
  { config, logger, port, socket, siblings, draining, onListening }: ServiceOptions,
  services: Dependencies & { readonly schemaBaseUrl: string; readonly states: () => ReturnType<FeedStates['values']> },
  cleanup: CleanupStack,
): Promise<void> => {
  if (siblings && !config.roles.includes('api')) return
  const { startHttp } = await import('./http.ts')
  const feeds = siblings?.feeds ?? { values: services.states }
  const addresses = { port, socket, publicUrl: publicUrlOf(config, port), issuer: issuerOf(config, port) }
  await startHttp(config, { ...services, ...addresses, logger, feeds, siblings, draining }, cleanup)
  await onListening?.()
}

const warnOfSettings = ({ insecure, roles, evidence }: Config, logger: Logger): void => {
  for (const name of insecure) logger.warn({ exception: name }, warningOf(name))
  if (roles.includes('worker') && !hasSigningKey(evidence))
    logger.warn({}, 'EVIDENCE_SIGNING_KEY is not set; the tree heads of the event log will not be signed')
}

/** Resolves, when ready, to the states of its feeds. When it rejects (StartupError), `cleanup` has to be run. */
export const startService = async (
  options: ServiceOptions,
  cleanup: CleanupStack,
  starting: Starting,
): Promise<Pick<FeedStates, 'values'>> => {
  const names = dependencyNames(options.config)
  try {
    // A dependency that never answers must not hold up the end.
    return await Promise.race([startParts(options, cleanup, { ...starting, names }), whenAborted(starting.signal)])
  } catch (error) {
    throw startRefusal(error, names)
  }
}

type Named = Starting & { readonly names: DependencyNames }

const startParts = async (options: ServiceOptions, cleanup: CleanupStack, starting: Named) => {
  const { config, logger, port, onRefused } = options
  const { names } = starting
  warnOfSettings(config, logger)
  const onUnanswered = reportingRefusals(names, starting.onWaiting)
  const opening = openDependencies(options, cleanup, onUnanswered)
  const dependencies = await reportingWait(names.database, starting.onWaiting, opening)
  const { ledger, database } = dependencies
  cleanup.defer(await recordStart(database.sql, config.roles, logger))
  const check = (): Promise<void> => checkLogIdentity(ledger, database)
  const onUnavailable = (error: Unavailable): void =>
    logger.warn({ reason: reasonOf(error, names) }, 'the event store is not responding yet')
  await reportingWait(names['event store'], starting.onWaiting, hasAnswered(check(), onUnavailable))
  // Feeds start once the identity of the log is checked. At shutdown they end after the HTTP server, whose requests may
  // wait for them.
  let states: FeedStates = new Map()
  const feedCleanup = createCleanupStack(error => logger.error({ error }, 'failed to stop a feed'))
  cleanup.defer(feedCleanup.run)
  const known = { publicUrl: publicUrlOf(config, port), isSet: config.publicUrl !== undefined }
  const schemaBaseUrl = await rememberSchemaBaseUrl(database, known)
  await serve(options, { ...dependencies, schemaBaseUrl, states: () => states.values() }, cleanup)
  const runsFeeds = config.roles.some(role => role !== 'api')
  const observed = { database, ledger, runsFeeds, bytesPerDay: config.tenantBytesPerDay }
  const stopObserving = observeService({ ...observed, feeds: () => states.values() })
  cleanup.defer(async () => stopObserving())
  await untilAnswered(check, logger, starting)
  if (runsFeeds)
    states = await startAllFeeds(options, { ...dependencies, schemaBaseUrl, feedCleanup, cleanup }, starting)
  const refuse = (reason: Error): void => {
    logger.error({ reason: reason.message }, 'event log and tables do not match')
    onRefused(reason)
  }
  feedCleanup.defer(watchLog(ledger, database, refuse))
  return states
}

type OfFeeds = Dependencies & {
  readonly schemaBaseUrl: string
  readonly feedCleanup: CleanupStack
  readonly cleanup: CleanupStack
}

const startAllFeeds = async (
  options: ServiceOptions,
  { ledger, database, feedsDatabase, schemaBaseUrl, feedCleanup, cleanup }: OfFeeds,
  { names, onOutage }: Named,
): Promise<FeedStates> => {
  const { config, logger } = options
  const [{ startFeeds }, { openSigning }, { startRebuilds }, { observeLag }] = await loadFeeds()
  const services = { database: feedsDatabase, store: ledger.store, ledger, logger, schemaBaseUrl }
  const signs = hasSigningKey(config.evidence)
  const onState = createOutageNotices(names, onOutage)
  const settings: FeedSettings = { ...config, openSigning: signs ? openSigning(config) : 'off', onState }
  const states = await startFeeds(settings, services, feedCleanup)
  if (config.roles.includes('projector')) startRebuilds(options, services, feedCleanup)
  const stopObservingLag = observeLag({ database, ledger, signs, manifestEveryMs: config.manifestEveryMs })
  cleanup.defer(async () => stopObservingLag())
  return states
}
