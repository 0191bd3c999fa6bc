/**
 * `--data-dir D --port P`. A process of its own, so a crash of the service does not interrupt its shutdown. D has
 * `cluster/`, `socket/`, `password` (private) and `postgres.log`.
 */

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type ChildContext, portArgument, runAsChild } from '../../childProcesses/childMain.ts'
import { openDataDirectory } from '../dataDirectory.ts'
import { holdPort } from '../freePorts.ts'
import { postgresBinaries } from './binaries.ts'
import { endOrphan, openCluster } from './cluster.ts'
import { postgresLaunch } from './launch.ts'
import { connectionString, HOST, type ServerStart, startServer, stopServer } from './server.ts'
import { makeSocketFolder } from './socket.ts'
import { StartupError, systemCode } from '../../lib/startupError.ts'

/** A supervisor that was just killed may still be shutting its server down. */
const LOCK_WAIT_MS = 10_000
const START_ATTEMPTS_MAX = 20
const START_RETRY_MS = 250
const CLOSE_MAX_MS = 25_000

/** A port that is free, or was a moment ago. Throws a StartupError if this one is in use. */
const probePort = async (wanted: number): Promise<number> => {
  try {
    const { port, release } = await holdPort(wanted, HOST)
    await release()
    return port
  } catch (error) {
    if (systemCode(error) === 'EADDRINUSE') throw new StartupError(`Port ${wanted} on ${HOST} is in use.`, error)
    if (systemCode(error) === 'EACCES') throw new StartupError(`Port ${wanted} on ${HOST} is not permitted.`, error)
    throw error
  }
}

/** Another program took the port, or the processes of a killed server are still ending. */
const isTransient = (error: unknown, mayBeFree: boolean): boolean =>
  error instanceof StartupError &&
  (/still in use|already exists/.test(error.message) || (mayBeFree && /^Port \d+ .* is in use/.test(error.message)))

type Wanted = { readonly port: number; readonly signal: AbortSignal; readonly mayBeFree: boolean }

/** `mayBeFree`: another attempt may find the port free. */
const startWithRetries = async (start: Omit<ServerStart, 'port'>, { port, signal, mayBeFree }: Wanted) => {
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

const options = { 'data-dir': { type: 'string' }, port: { type: 'string', default: '0' } } as const

/**
 * Creates the data directory at first, and ends a server that was left behind. Resolves to the superuser's connection
 * string of `ledger`; there is `eventstore` too.
 */
const start = async ({ signal, cleanup, fail }: ChildContext): Promise<string> => {
  const { values } = parseArgs({ options })
  if (values['data-dir'] === undefined) throw new StartupError('--data-dir is missing.')
  const wanted = portArgument(values.port)
  const directory = await openDataDirectory(values['data-dir'], { waitMs: LOCK_WAIT_MS })
  cleanup.defer(directory.release)
  const binaries = await postgresBinaries()
  const launch = await postgresLaunch(binaries, directory.path)
  const mayBeFree = (await endOrphan(join(directory.path, 'cluster'))) || wanted === 0
  if (!mayBeFree) await probePort(wanted)
  const cluster = await openCluster(directory.path, binaries, launch)
  const logPath = join(directory.path, 'postgres.log')
  const socketFolder = await makeSocketFolder(directory.path, launch)
  const place = { cluster, postgres: binaries.postgres, launch, logPath, socketFolder }
  const { server, port } = await startWithRetries(place, { port: wanted, signal, mayBeFree })
  cleanup.defer(() => stopServer(server))
  const ended = async (): Promise<void> =>
    fail(new StartupError(`Postgres ended unexpectedly (${await server.exited}); its log is ${logPath}.`))
  void ended()
  return connectionString(cluster, port, 'ledger')
}

runAsChild({ start, closeMaxMs: CLOSE_MAX_MS })
