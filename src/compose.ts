import type { Addresses } from './addressesFile.ts'
import {
  addressesOf,
  chooseListeningPlace,
  openDirectoryAndLog,
  openStores,
  publish,
  serveMetrics,
} from './compose/machine.ts'
import { observeProcess } from './compose/processMetrics.ts'
import { type Starting, startService } from './compose/service.ts'
import type { Config } from './config.ts'
import { metricsText } from './metrics.ts'
import type { Log } from './ports.ts'
import { createCleanupStack, type CleanupStack } from './cleanupStack.ts'

/** Composes the service of one process. Several processes are composed by src/cluster. */

export type { Starting } from './compose/service.ts'

export type Service = {
  readonly addresses: Addresses
  /** The file of the log, or `stdout`. */
  readonly logs: string
  /** Resolves to the reason when the service cannot go on: a dependency ended, or the event log is another. */
  readonly failed: Promise<Error>
  /** Drains requests, then closes everything in reverse order of its start. Idempotent. */
  readonly close: () => Promise<void>
}

const UNCONTROLLED: Starting = { signal: new AbortController().signal, onWaiting: () => undefined }

/** Starts the service. When a step fails, everything that was started before is closed. */
export const compose = async (config: Config, starting: Starting = UNCONTROLLED): Promise<Service> => {
  let log: Log | undefined
  const cleanup = createCleanupStack(error => log?.error({ error }, 'a resource did not close'))
  try {
    return await start(config, cleanup, { ...starting, onLog: opened => void (log = opened) })
  } catch (error) {
    await cleanup.run()
    throw error
  }
}

type StartingWithLog = Starting & { readonly onLog: (log: Log) => void }

const start = async (config: Config, cleanup: CleanupStack, starting: StartingWithLog): Promise<Service> => {
  const { log, place } = await openDirectoryAndLog(config, cleanup)
  starting.onLog(log)
  const failed = Promise.withResolvers<Error>()
  const stores = await openStores(config, cleanup, log, failed.resolve)
  const listening = await chooseListeningPlace(config, cleanup)
  observeProcess()
  const metrics = await serveMetrics(config, cleanup, () => metricsText({ process: 'service' }))
  const addresses = addressesOf(config, { port: listening.port, stores, metrics, pids: { service: process.pid } })
  const onListening = (): Promise<void> => publish(config, addresses, cleanup)
  await startService(
    { config, log, ...stores, ...listening, onListening, onRefused: failed.resolve },
    cleanup,
    starting,
  )
  return { addresses, logs: place, failed: failed.promise, close: cleanup.run }
}
