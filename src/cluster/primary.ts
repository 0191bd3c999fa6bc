import type { Service, Starting } from '../compose/service.ts'
import type { Config } from '../settings/config.ts'
import { createCleanupStack, type CleanupStack } from '../lib/cleanupStack.ts'
import {
  addressesOf,
  closingOnFailure,
  issuerOf,
  openDirectoryAndLog,
  openStores,
  publicUrlOf,
  publish,
  serveMetrics,
  type Stores,
} from '../compose/machine.ts'
import { observeProcess } from '../compose/processMetrics.ts'
import { joinedTexts, metricsText, observe } from '../lib/metrics.ts'
import type { Logger } from '../ports.ts'
import { sleep } from '../lib/time.ts'
import { acceptConnections } from './connections.ts'
import { type Children, startChildren } from './children.ts'
import { createSerialQueue } from '../lib/serialQueue.ts'

/**
 * The primary holds the data directory, starts the embedded services, accepts connections, and supervises its children:
 * API processes, and one of all feeds. They load their modules while the embedded services start.
 */

/** Starts the service. When a step fails, everything that was started before is closed. */
export const startProcesses = (config: Config, starting: Starting): Promise<Service> =>
  closingOnFailure((cleanup, onLog) => start(config, cleanup, { ...starting, onLog }), starting.signal)

type StartingWithLog = Starting & { readonly onLog: (logger: Logger) => void }

/** Long because the parts know each other. */
const start = async (config: Config, cleanup: CleanupStack, starting: StartingWithLog): Promise<Service> => {
  const { logger, place } = await openDirectoryAndLog(config, cleanup, 'primary')
  starting.onLog(logger)
  const failed = Promise.withResolvers<Error>()
  const stores = Promise.withResolvers<Stores & { readonly issuerPort: number | undefined }>()
  stores.promise.catch(() => undefined)
  const connections = await acceptConnections(config, () => children.apis().map(({ receiver }) => receiver()))
  const { port } = connections
  const metrics = await observeProcesses(config, cleanup, () => children)
  const addresses = async () =>
    addressesOf(config, { port, stores: await stores.promise, metrics, pids: children.pids() })
  const published = createCleanupStack(error => logger.error({ error }, 'cannot remove the address file'))
  let isClosing = false
  const publishNow = inOrder(async () => {
    const present = await addresses()
    if (!isClosing) await publish(config, present, published)
  })
  const children = startChildren(config, {
    logger,
    settings: stores.promise.then(({ databaseUrl, eventStoreUrl, issuerPort }) => ({
      ...{ port, databaseUrl, eventStoreUrl, issuerPort },
    })),
    onChange: () => {
      connections.distribute()
      publishNow().catch((error: unknown) => logger.error({ error }, 'cannot write the address file'))
    },
    ...{ onWaiting: onceEach(starting.onWaiting), onOutage: starting.onOutage, onFailed: failed.resolve },
  })
  // Closed after the children, which use the embedded services.
  const embedded = createCleanupStack(error => logger.error({ error }, 'failed to stop an embedded service'))
  cleanup.defer(embedded.run)
  cleanup.defer(children.stop)
  cleanup.defer(async () => connections.close())
  cleanup.defer(async () => {
    isClosing = true
    await published.run()
  })
  const issuerPort =
    config.issuer === undefined ? await serveIssuer(config, { port, logger, children }, embedded) : undefined
  stores.resolve({
    ...(await openStores(config, embedded, logger, { onExit: failed.resolve, onOutage: starting.onOutage })),
    issuerPort,
  })
  await children.ready
  const drain = (): Promise<void> => {
    children.drain()
    return sleep(config.shutdownDelayMs)
  }
  return { addresses: await addresses(), logs: place, failed: failed.promise, drain, close: cleanup.run }
}

type IssuerParts = { readonly port: number; readonly logger: Logger; readonly children: Pick<Children, 'revoke'> }

/** Log-ins are in the memory of this process, as children come and go. Resolves to the port of the embedded issuer. */
const serveIssuer = async (config: Config, { port, logger, children }: IssuerParts, cleanup: CleanupStack) => {
  const { startIssuerServer } = await import('../embedded/issuer/issuerServer.ts')
  const { dataDir, audience } = config
  const server = await startIssuerServer({
    ...{ dataDir, audience, issuer: issuerOf(config, port), resource: publicUrlOf(config, port) },
    revoke: children.revoke,
    onError: error => logger.error({ error }, 'the embedded issuer failed'),
  })
  cleanup.defer(server.close)
  return server.port
}

/** Serves the metrics of all processes. Resolves to their URL. */
const observeProcesses = (config: Config, cleanup: CleanupStack, children: () => Children) => {
  observeProcess()
  observe({
    name: 'ledger.process.up',
    unit: '',
    help: '1 if the process answers, 0 if it does not.',
    read: () => children().up(),
  })
  return serveMetrics(config, cleanup, async () =>
    joinedTexts([await metricsText({ process: 'primary' }), ...(await children().metrics())]),
  )
}

/** Two publications at once would write the same file. */
const inOrder = (work: () => Promise<void>): (() => Promise<void>) => {
  const queue = createSerialQueue()
  return () => queue(work)
}

/** Each child reports what it waits for; it is passed on once. */
const onceEach = (report: (sentence: string) => void): ((sentence: string) => void) => {
  const reported = new Set<string>()
  return sentence => {
    if (reported.has(sentence)) return
    reported.add(sentence)
    report(sentence)
  }
}
