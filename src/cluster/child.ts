import type { Socket } from 'node:net'
import { runAsChild, type ChildContext } from '../childProcesses/childMain.ts'
import { createCleanupStack } from '../lib/cleanupStack.ts'
import { realWorld } from '../lib/clockAndRandomness.ts'
import { openLog } from '../compose/serviceLog.ts'
import { observeProcess } from '../compose/processMetrics.ts'
import { startService } from '../compose/service.ts'
import type { Siblings } from '../compose/siblings.ts'
import { readConfig } from '../settings/config.ts'
import { DRAIN_MS } from '../settings/timeBudgets.ts'
import { metricsText } from '../lib/metrics.ts'
import type { Logger } from '../ports.ts'
import { endTelemetry } from '../telemetry.ts'
import { createChildLimits } from './childLimits.ts'
import { createReportedStates, REPORT_EVERY_MS, sentStateOf } from './feedStates.ts'
import type { ChildSettings, Handover, PrimaryOperations, ServiceOperations } from './protocol.ts'

/**
 * A child loads its modules, waits for the settings from the primary, and ends at its request, or at once without it: a
 * killed primary leaves no process behind.
 */

/** The time after which a process that does not close ends all the same. */
const CLOSE_MAX_MS = DRAIN_MS + 500

type Primary = ChildContext<PrimaryOperations>['call']

const settings = Promise.withResolvers<ChildSettings>()
const draining = new AbortController()
const reported = createReportedStates(realWorld())
let serve: ((connection: Socket) => void) | undefined
let processName = 'starting'
let notAnswering: readonly string[] = []
let revoke: (name: string) => Promise<void> = () => Promise.reject(new Error('This process does not serve yet.'))

const siblingsOf = ({ apiProcesses, issuerPort }: ChildSettings, call: Primary, logger: Logger): Siblings => ({
  apiProcesses,
  issuerPort,
  ...createChildLimits({ call }, error =>
    logger.warn({ error }, 'the shared rate-limit counter is unavailable; each process enforces the limits by itself'),
  ),
  feeds: reported,
  areAnswering: () => notAnswering.length === 0,
  metrics: () => call('allMetrics'),
  serve: server => {
    serve = server.receive
    return server
  },
  onRevoke: given => {
    revoke = given
  },
})

/** The primary may have ended, and then nothing needs the result. */
const ignoreFailure = (work: Promise<unknown>): void => void work.catch(() => undefined)

const receiveConnections = (call: Primary): void => {
  process.on('message', (message: Handover | object, connection?: Socket) => {
    if (!('connection' in message)) return
    // There is none when the client has closed it on the way.
    if (connection && serve) serve(connection)
    else connection?.destroy()
    ignoreFailure(call('acknowledge', message.connection))
  })
}

const start = async ({ signal, cleanup: last, call }: ChildContext<PrimaryOperations>): Promise<string> => {
  last.defer(endTelemetry)
  receiveConnections(call)
  const known = await untilKnown(signal)
  const { name, roles, port, databaseUrl, eventStoreUrl } = known
  processName = name
  const config = { ...readConfig(), port, roles }
  observeProcess()
  const { logger, flush } = await openLog(config, name)
  const cleanup = createCleanupStack(error => logger.error({ error }, 'failed to close a resource'))
  last.defer(cleanup.run)
  cleanup.defer(flush)
  signal.addEventListener('abort', () => ignoreFailure(call('ending')))
  const siblings = siblingsOf(known, call, logger)
  const onListening = async (): Promise<void> => ignoreFailure(call('listening'))
  const onRefused = (reason: Error): void => ignoreFailure(call('refused', reason.message))
  const onWaiting = (sentence: string): void => ignoreFailure(call('waiting', sentence))
  const onOutage = (sentence: string): void => ignoreFailure(call('outage', sentence))
  const states = await startService(
    {
      ...{ config, logger, databaseUrl, eventStoreUrl, port, siblings },
      ...{ draining: draining.signal, onListening, onRefused },
    },
    cleanup,
    { signal, onWaiting, onOutage },
  )
  const report = (): void => ignoreFailure(call('reportFeeds', [...states.values()].map(sentStateOf)))
  if (!roles.includes('api')) setInterval(report, REPORT_EVERY_MS).unref()
  return name
}

const untilKnown = (signal: AbortSignal): Promise<ChildSettings> => {
  signal.addEventListener('abort', () => settings.reject(new Error('Stopped before it had its settings.')))
  return settings.promise
}

const operations: Omit<ServiceOperations, 'stop'> = {
  start: settings.resolve,
  ping: names => {
    notAnswering = names
  },
  drain: () => draining.abort(),
  revoke: name => revoke(name),
  metrics: () => metricsText({ process: processName }),
  feeds: reported.receive,
}

runAsChild<PrimaryOperations>({ start, operations, closeMaxMs: CLOSE_MAX_MS, endsWithParent: true })
