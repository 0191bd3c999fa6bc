import { join, resolve } from 'node:path'
import type { ChildOperations } from '../childProcesses/protocol.ts'
import { type Child, superviseChild, type Supervision } from '../childProcesses/supervisor.ts'
import { ownConnectionString } from './postgres/socket.ts'

/** The embedded services, which let `npm start` run without other software. Each is a child process. */
export type EmbeddedServices = {
  /** Addresses of the requested services, over TCP. */
  readonly databaseUrl: string | undefined
  readonly eventStoreUrl: string | undefined
  /** The connection string of the same database for the processes of the service: it prefers a Unix socket. */
  readonly ownDatabaseUrl: string | undefined
  readonly pids: Readonly<Record<string, number>>
  /** Stops them in the reverse order of their start. */
  readonly stop: () => Promise<void>
}

export type RequestedServices = {
  readonly dataDir: string
  readonly database: boolean
  readonly eventStore: boolean
  readonly eventStorePort?: number
  readonly log: (line: string) => void
  /** Called with a sentence for a person when a service has stopped or does not respond. */
  readonly onOutage?: (sentence: string) => void
  /** Called when a service has ended for good, so the ledger cannot continue. */
  readonly onExit: (reason: Error) => void
}

const modules = {
  postgres: new URL('./postgres/postgres.ts', import.meta.url),
  eventstore: new URL('./eventstore/main.ts', import.meta.url),
}

/** By default the young generation stays at 128 MiB, more than all that the event store keeps. */
const EVENT_STORE_OPTIONS = ['--max-semi-space-size=16'] as const
/** With one arena of glibc, buffers that one thread allocates and others release are used again. */
const EVENT_STORE_VARIABLES = { MALLOC_ARENA_MAX: '1' } as const

/** Of a first start on a slow machine, which creates the cluster. */
const START_MAX_MS = 90_000

/** Without the password, because every user can read the arguments of a process. */
const siblingOf = (address: string, name: string): string => {
  const url = new URL(address)
  url.pathname = `/${name}`
  url.password = ''
  return url.href
}

const passwordOf = (address: string): string => decodeURIComponent(new URL(address).password)

/** The event store keeps its log in the embedded Postgres. Long because its functions share the running children. */
export const startEmbeddedServices = async (request: RequestedServices): Promise<EmbeddedServices> => {
  const { log, onOutage, onExit, eventStorePort = 0 } = request
  const running: Child[] = []
  const stop = async (): Promise<void> => {
    for (const child of running.toReversed()) await child.stop()
  }
  const report = (sentence: string): void => {
    log(sentence)
    onOutage?.(sentence)
  }
  const start = async (options: Supervision<ChildOperations>): Promise<string> => {
    const { name } = options
    const child = superviseChild({
      // Options of Node for this process, such as `--import`, are not theirs.
      nodeOptions: [],
      startMaxMs: START_MAX_MS,
      log,
      onSilent: () => report(`The embedded ${name} is not responding.`),
      onEnded: how => report(`The embedded ${name} has stopped and is being restarted: ${how}`),
      onGivenUp: onExit,
      ...options,
    })
    running.push(child)
    return child.ready
  }
  const startPostgres = (dataDir: string): Promise<string> =>
    start({ name: 'postgres', module: modules.postgres, args: port => ['--data-dir', dataDir, '--port', port] })
  const startEventStore = (postgresUrl: string): Promise<string> =>
    start({
      ...{ name: 'eventstore', module: modules.eventstore, port: eventStorePort },
      args: port => ['--database-url', siblingOf(postgresUrl, 'eventstore'), '--port', port],
      nodeOptions: EVENT_STORE_OPTIONS,
      variables: { ...EVENT_STORE_VARIABLES, PGPASSWORD: passwordOf(postgresUrl) },
    })
  try {
    const postgresDir = join(request.dataDir, 'postgres')
    const postgres = request.database || request.eventStore ? await startPostgres(postgresDir) : undefined
    const ownUrl = postgres && (await ownConnectionString(resolve(postgresDir), postgres))
    const eventStoreUrl = request.eventStore && ownUrl !== undefined ? await startEventStore(ownUrl) : undefined
    return {
      databaseUrl: request.database ? postgres : undefined,
      ownDatabaseUrl: request.database ? ownUrl : undefined,
      eventStoreUrl,
      pids: Object.fromEntries(running.map(({ name, current }) => [name, current().pid])),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
