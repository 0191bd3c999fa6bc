import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCleanupStack } from '../lib/cleanupStack.ts'
import { realWorld } from '../lib/clockAndRandomness.ts'
import { openLog } from '../compose/serviceLog.ts'
import { observeProcess } from '../compose/processMetrics.ts'
import { startService } from '../compose/service.ts'
import type { Siblings } from '../compose/siblings.ts'
import { readConfig } from '../settings/config.ts'
import { metricsText } from '../lib/metrics.ts'
import { type Logger, Unavailable } from '../ports.ts'
import { sentenceOf } from '../lib/startupError.ts'
import { endTelemetry } from '../telemetry.ts'
import { createChannel, type ChannelMessage } from './channel.ts'
import { createChildLimits } from './childLimits.ts'
import { createReportedStates, REPORT_EVERY_MS, sentStateOf } from './feedStates.ts'
import type { ChildOperations, ChildSettings, Handover, PrimaryOperations } from './protocol.ts'

/**
 * A child process of the service: an API process, or that of the feeds. It loads its modules, waits for the settings
 * from the primary, and ends at the primary's request. Without the primary it ends at once, because its channel is
 * closed, so a primary that is killed leaves no process behind.
 */

/** The time after which a process that does not close ends all the same. */
const CLOSE_MAX_MS = 10_500
const FAILURE_SENT_MAX_MS = 1_000
const REVOCATION_SENT_MAX_MS = 1_000

const world = realWorld()
const ending = new AbortController()
const reported = createReportedStates(world)
let logger: Logger | undefined
let serve: ((connection: Socket) => void) | undefined
let processName = 'starting'
let notAnswering: readonly string[] = []
let learnRevoked: (name: string) => void = () => undefined
const cleanup = createCleanupStack(error => logger?.error({ error }, 'a resource did not close'))

const warn = (error: unknown): void => logger?.warn({ error }, 'limits are counted in this process only')

let started: Promise<void> | undefined
let isEnding = false

const end = async (code: number): Promise<void> => {
  if (isEnding) return
  isEnding = true
  setTimeout(() => process.exit(code || 1), CLOSE_MAX_MS)
  ignoreFailure(primary.call('ending'))
  ending.abort()
  await started?.catch(() => undefined)
  await cleanup.run()
  await endTelemetry()
  process.exit(code)
}

const fail = async (cause: unknown, port: number): Promise<void> => {
  const stack = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  const failure = { reason: sentenceOf(cause, port) ?? stack, isUnavailable: cause instanceof Unavailable }
  await Promise.race([primary.call('notStarted', failure).catch(() => undefined), sleep(FAILURE_SENT_MAX_MS)])
  await end(1)
}

const siblingsOf = (apiProcesses: number): Siblings => ({
  apiProcesses,
  ...createChildLimits(primary, warn),
  feeds: reported,
  areAnswering: () => notAnswering.length === 0,
  serve: server => {
    serve = server.receive
    return server
  },
  tellRevoked: async name => {
    // A sibling that does not answer reads the list in Postgres within seconds.
    await Promise.race([primary.call('revoke', name).catch(() => undefined), sleep(REVOCATION_SENT_MAX_MS)])
  },
  onRevoked: learn => {
    learnRevoked = learn
  },
})

/** The primary may have ended, and then nothing needs the result. */
const ignoreFailure = (work: Promise<unknown>): void => void work.catch(() => undefined)

const start = async ({ name, roles, apiProcesses, port, databaseUrl, eventStoreUrl }: ChildSettings): Promise<void> => {
  processName = name
  const config = { ...readConfig(), port, roles }
  observeProcess()
  const opened = await openLog(config, name)
  logger = opened.logger
  cleanup.defer(opened.flush)
  const states = await startService(
    {
      config,
      logger: opened.logger,
      databaseUrl,
      eventStoreUrl,
      port,
      siblings: siblingsOf(apiProcesses),
      onListening: async () => ignoreFailure(primary.call('listening')),
      onRefused: reason => ignoreFailure(primary.call('refused', reason.message)),
    },
    cleanup,
    { signal: ending.signal, onWaiting: reason => ignoreFailure(primary.call('waiting', reason)) },
  )
  const report = (): void => ignoreFailure(primary.call('reportFeeds', [...states.values()].map(sentStateOf)))
  if (!roles.includes('api')) setInterval(report, REPORT_EVERY_MS).unref()
  await primary.call('ready')
}

const own: ChildOperations = {
  start: settings => {
    if (isEnding) return
    started = start(settings)
    started.catch(error => (isEnding ? undefined : fail(error, settings.port)))
  },
  stop: () => void end(0),
  ping: names => {
    notAnswering = names
  },
  learnRevoked: name => learnRevoked(name),
  metrics: () => metricsText({ process: processName }),
  feeds: reported.receive,
}

const primary = createChannel<PrimaryOperations>(
  // An error means that the primary has ended; the callback keeps it from being thrown.
  message => void process.send?.(message, undefined, undefined, () => undefined),
  own,
)
process.on('message', (message: ChannelMessage | Handover, connection?: Socket) => {
  if (!('connection' in message)) return primary.receive(message)
  // There is none when the client has closed it on the way.
  if (connection && serve) serve(connection)
  else connection?.destroy()
  ignoreFailure(primary.call('acknowledge', message.connection))
})
process.on('disconnect', () => process.exit(0))
// Service managers may signal every process; the primary ends its children in order.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.on('uncaughtException', error => {
  process.stderr.write(`${error.stack ?? error.message}\n`)
  void end(1)
})
