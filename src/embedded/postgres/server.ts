import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, rename, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { endProcess, hasEnded } from '../../childProcesses/endProcess.ts'
import { type Cluster, postgresEnvironment, startFailure } from './cluster.ts'
import type { Launch } from './launch.ts'
import { socketSetting } from './socket.ts'
import { StartupError, systemCode } from '../../lib/startupError.ts'

export const HOST = '127.0.0.1'
const DATABASES = ['ledger', 'eventstore'] as const
/** Crash recovery replays up to max_wal_size before the first connection. */
const START_MAX_MS = 60_000
const POLL_MS = 50
const STOP_MAX_MS = 15_000
const LOG_MAX_BYTES = 16 * 1024 * 1024
const OUTPUT_MAX_BYTES = 8 * 1024

/** Durability settings keep their defaults: fsync, full_page_writes and synchronous_commit are on. */
const settings: Readonly<Record<string, string>> = {
  listen_addresses: HOST,
  unix_socket_permissions: '0700',
  max_connections: '100',
  shared_buffers: '256MB',
  effective_cache_size: '1GB',
  // No replica and no archive reads this WAL. `ledger backup` needs this level, and a slot, to copy the files of a
  // running server.
  wal_level: 'replica',
  max_wal_senders: '0',
  max_replication_slots: '1',
  max_logical_replication_workers: '0',
  wal_buffers: '16MB',
  // Checkpoints are rare, because each one turns the next write of every page into a full page in the WAL.
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  random_page_cost: '1.1',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
}

export type ServerStart = {
  readonly cluster: Cluster
  readonly postgres: string
  readonly launch: Launch
  readonly port: number
  readonly logPath: string
  /** A private folder, since every user could put a socket into a shared one, such as /tmp; undefined for TCP alone. */
  readonly socketFolder: string | undefined
}

export type ServerProcess = {
  readonly process: ChildProcess
  /** Resolves to the way in which it ended. */
  readonly exited: Promise<string>
  readonly lastLines: () => Promise<string>
}

/** The open log and the offset at which this run begins. One old log is kept. */
const openLog = async (path: string) => {
  const bytes = await stat(path).then(
    file => file.size,
    () => 0,
  )
  if (bytes > LOG_MAX_BYTES) await rename(path, `${path}.old`)
  return { file: await open(path, 'a', 0o600), from: bytes > LOG_MAX_BYTES ? 0 : bytes }
}

const spawnServer = async ({ launch, postgres, logPath }: ServerStart, args: string[]): Promise<ServerProcess> => {
  const { file, from } = await openLog(logPath)
  const [program, all] = launch.command(postgres, args)
  const stdio = ['ignore', file.fd, file.fd] as const
  const child = spawn(program, all, { ...launch.spawnOptions, env: postgresEnvironment, stdio: [...stdio] })
  await once(child, 'spawn')
  await file.close()
  const lastLines = async () => (await readFile(logPath)).subarray(from).subarray(-OUTPUT_MAX_BYTES).toString()
  const exited = once(child, 'exit').then(([code, signal]) => (signal === null ? `exit code ${code}` : `${signal}`))
  return { process: child, exited, lastLines }
}

const isStarting = (error: unknown): boolean =>
  ['57P03', 'ECONNREFUSED', 'ECONNRESET'].includes(systemCode(error) ?? '')

/** The connection string of a superuser. */
export const connectionString = ({ user, password }: Cluster, port: number, database: string): string =>
  `postgres://${user}:${password}@${HOST}:${port}/${database}`

/** Creates the databases, which also proves that the server accepts connections. False while it is still starting. */
const createDatabases = async (url: string): Promise<boolean> => {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: START_MAX_MS })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ datname: string }>('select datname from pg_database')
    const missing = DATABASES.filter(name => !rows.some(row => row.datname === name))
    for (const name of missing) await client.query(`create database ${client.escapeIdentifier(name)}`)
    return true
  } catch (error) {
    if (isStarting(error)) return false
    throw error
  } finally {
    await client.end().catch(() => undefined)
  }
}

const untilReady = async (server: ServerProcess, start: ServerStart, signal: AbortSignal): Promise<void> => {
  const directory = start.cluster.path
  const deadline = performance.now() + START_MAX_MS
  for (;;) {
    signal.throwIfAborted()
    const up = await createDatabases(connectionString(start.cluster, start.port, 'postgres')).catch(error => error)
    if (hasEnded(server.process)) throw startFailure(directory, start.port, await server.lastLines())
    if (up === true) return
    if (up !== false) throw up
    if (performance.now() >= deadline)
      throw new StartupError(`Postgres in ${directory} did not start in ${START_MAX_MS} ms.`)
    await sleep(POLL_MS)
  }
}

/** Fast shutdown: open transactions are rolled back, committed ones are on disk. */
export const stopServer = (server: ServerProcess): Promise<void> => endProcess(server.process, 'SIGINT', STOP_MAX_MS)

/** Starts the server and resolves when it accepts connections and its databases exist. Throws a StartupError. */
export const startServer = async (start: ServerStart, signal: AbortSignal): Promise<ServerProcess> => {
  const all = { ...settings, unix_socket_directories: socketSetting(start.socketFolder) }
  const settingArguments = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = await spawnServer(start, ['-D', start.cluster.path, '-p', `${start.port}`, ...settingArguments])
  try {
    await untilReady(server, start, signal)
    return server
  } catch (error) {
    await stopServer(server)
    throw error
  }
}
