import { join, resolve } from 'node:path'
import { type Child, startChild } from './childSupervisor.ts'
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
  /** Called when a service has ended for good, so the ledger cannot continue. */
  readonly onExit: (reason: Error) => void
}

const modules = {
  postgres: new URL('./postgres/postgres.ts', import.meta.url),
  eventstore: new URL('./eventstore/main.ts', import.meta.url),
}

/**
 * The young generation of V8's heap: by default it grows to 128 MiB and stays there, which is more than everything that
 * the event store keeps.
 */
const EVENT_STORE_OPTIONS = ['--max-semi-space-size=16'] as const
/**
 * One arena of glibc's allocator: the buffers of events are allocated by one thread and released by others, and with
 * several arenas the released memory is not used again. Other allocators ignore it.
 */
const EVENT_STORE_VARIABLES = { MALLOC_ARENA_MAX: '1' } as const

/**
 * Another database of the same server, without the password, because every user can read the arguments of a process.
 */
const siblingOf = (address: string, name: string): string => {
  const url = new URL(address)
  url.pathname = `/${name}`
  url.password = ''
  return url.href
}

/**
 * Starts the requested services. The embedded event store keeps its log in the embedded Postgres, in its own database.
 */
export const startEmbeddedServices = async (request: RequestedServices): Promise<EmbeddedServices> => {
  const { log, onExit } = request
  const running: Child[] = []
  const stop = async (): Promise<void> => {
    for (const child of running.toReversed()) await child.stop()
  }
  const start = async (name: keyof typeof modules, args: readonly string[]): Promise<Child> => {
    const options = name === 'eventstore' ? { nodeOptions: EVENT_STORE_OPTIONS, variables: EVENT_STORE_VARIABLES } : {}
    const child = await startChild({ name, module: modules[name], args, ...options, log, onExit })
    running.push(child)
    return child
  }
  try {
    const needsPostgres = request.database || request.eventStore
    const postgresDir = join(request.dataDir, 'postgres')
    const postgres = needsPostgres ? await start('postgres', ['--data-dir', postgresDir, '--port', '0']) : undefined
    const ownUrl = postgres && (await ownConnectionString(resolve(postgresDir), postgres.address))
    const eventStore =
      request.eventStore && ownUrl !== undefined
        ? await start('eventstore', [
            '--database-url',
            siblingOf(ownUrl, 'eventstore'),
            '--password-file',
            join(postgresDir, 'password'),
            '--port',
            String(request.eventStorePort ?? 0),
          ])
        : undefined
    return {
      databaseUrl: request.database ? postgres?.address : undefined,
      ownDatabaseUrl: request.database ? ownUrl : undefined,
      eventStoreUrl: eventStore?.address,
      pids: { ...(postgres ? { postgres: postgres.pid } : {}), ...(eventStore ? { eventstore: eventStore.pid } : {}) },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
