/**
 * Embedded Postgres as a child process: `node src/embedded/postgres/postgres.ts --data-dir D --port P` prints its
 * connection string, then `ready`. A separate process, so a crash of the service does not interrupt its shutdown.
 * D has `cluster/`, `socket/`, `password` (private) and `postgres.log`.
 */

import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDataDirectory } from '../dataDirectory.ts'
import { type ServiceOptions, runAsChild } from '../childMain.ts'
import { findFreePort } from '../freePorts.ts'
import { postgresBinaries } from './binaries.ts'
import { endOrphan, openCluster } from './cluster.ts'
import { postgresLaunch } from './launch.ts'
import { connectionString, HOST, type ServerProcess, type ServerStart, startServer, stopServer } from './server.ts'
import { makeSocketFolder } from './socket.ts'
import { StartupError, systemCode } from '../../lib/startupError.ts'

/** A supervisor that was just killed may still be shutting its server down. */
const LOCK_WAIT_MS = 10_000
const START_ATTEMPTS_MAX = 20
const START_RETRY_MS = 250

export type EmbeddedPostgres = {
  /** The connection string of the database `ledger`, as a superuser; the server has the database `eventstore` too. */
  readonly address: string
  /** The pid of the postmaster. */
  readonly pid: number
  /** Fast shutdown: open transactions are rolled back, committed ones are on disk. */
  close(): Promise<void>
  /** Settles if the server ended by itself. */
  readonly ended: Promise<Error>
}

/** Checks that the port is free, or finds a free one for 0. Throws a StartupError if it is in use. */
const probePort = async (port: number): Promise<number> => {
  if (port === 0) return findFreePort(HOST)
  const server = createServer()
  try {
    server.listen(port, HOST)
    await once(server, 'listening')
    return port
  } catch (error) {
    if (systemCode(error) === 'EADDRINUSE') throw new StartupError(`Port ${port} on ${HOST} is in use.`, error)
    if (systemCode(error) === 'EACCES') throw new StartupError(`Port ${port} on ${HOST} is not permitted.`, error)
    throw error
  } finally {
    server.close()
  }
}

/**
 * Errors that another attempt may solve: another program took the free port, or the processes of a killed server are
 * still ending.
 */
const isTransient = (error: unknown, mayBeFree: boolean): boolean =>
  error instanceof StartupError &&
  (/still in use|already exists/.test(error.message) || (mayBeFree && /^Port \d+ .* is in use/.test(error.message)))

/** `mayBeFree`: another attempt may find the port free. */
const startWithRetries = async (
  start: Omit<ServerStart, 'port'>,
  { port, signal }: ServiceOptions,
  mayBeFree: boolean,
) => {
  for (let attempt = 1; ; attempt++) {
    try {
      const probed = await probePort(port)
      return { server: await startServer({ ...start, port: probed }, signal), port: probed }
    } catch (error) {
      if (signal.aborted || attempt === START_ATTEMPTS_MAX || !isTransient(error, mayBeFree)) throw error
      await sleep(START_RETRY_MS)
    }
  }
}

const unexpectedEnd = async (server: ServerProcess, logPath: string): Promise<Error> =>
  new StartupError(`Postgres ended unexpectedly (${await server.exited}); its log is ${logPath}.`)

/**
 * Starts Postgres on `dataDir`, after creating it on the first start and ending a server that an earlier start left
 * behind. Port 0 takes a free one. Throws a StartupError.
 */
export const startPostgres = async (options: ServiceOptions): Promise<EmbeddedPostgres> => {
  const directory = await openDataDirectory(options.dataDir, { waitMs: LOCK_WAIT_MS })
  try {
    const binaries = await postgresBinaries()
    const launch = await postgresLaunch(binaries, directory.path)
    const mayBeFree = (await endOrphan(join(directory.path, 'cluster'))) || options.port === 0
    if (!mayBeFree) await probePort(options.port)
    const cluster = await openCluster(directory.path, binaries, launch)
    const logPath = join(directory.path, 'postgres.log')
    const socketFolder = await makeSocketFolder(directory.path, launch)
    const start = { cluster, postgres: binaries.postgres, launch, logPath, socketFolder }
    const { server, port } = await startWithRetries(start, options, mayBeFree)
    const close = async () => {
      await stopServer(server)
      await directory.release()
    }
    const address = connectionString(cluster, port, 'ledger')
    return { address, pid: server.pid, close, ended: unexpectedEnd(server, logPath) }
  } catch (error) {
    await directory.release()
    throw error
  }
}

if (import.meta.main) await runAsChild(startPostgres)
