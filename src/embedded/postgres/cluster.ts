/** The directory of a Postgres cluster: created atomically, and freed of a server that outlived its supervisor. */

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { signalProcess } from '../../childProcesses/endProcess.ts'
import { directoryRefusal } from '../dataDirectory.ts'
import { readOrCreatePrivate } from '../privateFile.ts'
import type { PostgresBinaries } from './binaries.ts'
import type { Launch } from './launch.ts'
import { StartupError } from '../../lib/startupError.ts'

export type Cluster = { readonly path: string; readonly user: string; readonly password: string }

const run = promisify(execFile)

const USER = 'ledger'
const PASSWORD_FILE = 'password'
const UNFINISHED = 'cluster.unfinished-'
const PASSWORD_BYTES = 24
const FAST_SHUTDOWN_MAX_MS = 5_000
const KILL_MAX_MS = 5_000
const POLL_MS = 50
const OUTPUT_MAX_CHARS = 4_000

const MEBIBYTE = 1024 * 1024

/**
 * Settings of glibc's allocator, in bytes. By default the end of each statement returns the top of the heap to the
 * system, and the next one takes it again, page by page. A process may keep this much unused memory instead of that.
 * A set threshold also ends the adaptation of the size above which a block is mapped alone, hence that size too. Other
 * allocators ignore them.
 */
const allocator = {
  MALLOC_TRIM_THRESHOLD_: `${2 * MEBIBYTE}`,
  MALLOC_TOP_PAD_: `${MEBIBYTE / 4}`,
  MALLOC_MMAP_THRESHOLD_: `${MEBIBYTE}`,
}

/** The environment of Postgres. Variables of the developer, such as PGDATA or PGPORT, must not reach it. */
export const postgresEnvironment = {
  PATH: process.env['PATH'] ?? '/usr/bin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
  ...allocator,
}

const isFull = (output: string): boolean => /no space left|disk quota/i.test(output)

/** The sentence for the last output of initdb or Postgres. */
export const startFailure = (directory: string, port: number | undefined, output: string): StartupError => {
  if (isFull(output)) return new StartupError(`The data directory ${directory} has no space left on its disk.`)
  if (/address already in use/i.test(output)) return new StartupError(`Port ${port} on 127.0.0.1 is in use.`)
  const fatal = output.match(/^.*(?:FATAL|PANIC|error):\s*(.*)$/im)?.[1] ?? output.trim().split('\n').at(-1) ?? ''
  return new StartupError(`Postgres in ${directory} did not start: ${fatal === '' ? 'no reason was given' : fatal}`)
}

const ensurePassword = async (directory: string, launch: Launch): Promise<string> => {
  const generate = async (): Promise<string> => `${randomBytes(PASSWORD_BYTES).toString('base64url')}\n`
  const password = await readOrCreatePrivate(directory, PASSWORD_FILE, generate)
  // initdb reads it, and runs as the owner of the cluster.
  if (launch.account) await chown(join(directory, PASSWORD_FILE), launch.account.uid, launch.account.gid)
  return password.trim()
}

const initdbArguments = (directory: string, path: string): string[] => [
  `--pgdata=${path}`,
  `--username=${USER}`,
  `--pwfile=${join(directory, PASSWORD_FILE)}`,
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  // Locale C gives the same order of text on every machine.
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--no-instructions',
]

/** Resolves to the output if it failed. */
const runInitdb = async (initdb: string, args: readonly string[], launch: Launch): Promise<string | undefined> => {
  const [program, all] = launch.command(initdb, args)
  const running = run(program, [...all], { ...launch.spawnOptions, env: postgresEnvironment })
  return await running.then(
    () => undefined,
    (error: Error & { stdout?: string; stderr?: string }) =>
      `${error.stdout ?? ''}${error.stderr ?? ''}`.slice(-OUTPUT_MAX_CHARS) || error.message,
  )
}

const removeUnfinished = async (directory: string): Promise<void> => {
  for (const name of await readdir(directory)) {
    // An initdb whose supervisor was killed may still be writing there. Files that cannot be removed now are removed by
    // the next start.
    if (name.startsWith(UNFINISHED)) await rm(join(directory, name), { recursive: true }).catch(() => undefined)
  }
}

/** In a temporary folder, renamed when all is on disk: an interrupted start leaves nothing that looks like a cluster. */
const initialise = async (directory: string, binaries: PostgresBinaries, launch: Launch): Promise<void> => {
  await removeUnfinished(directory)
  const unfinished = await mkdtemp(join(directory, UNFINISHED))
  if (launch.account) await chown(unfinished, launch.account.uid, launch.account.gid)
  const failure = await runInitdb(binaries.initdb, initdbArguments(directory, unfinished), launch)
  if (failure !== undefined) throw startFailure(directory, undefined, failure)
  await rename(unfinished, join(directory, 'cluster'))
}

/** The cluster in `directory`, created on the first call. Throws a StartupError if the disk is full or not writable. */
export const openCluster = async (directory: string, binaries: PostgresBinaries, launch: Launch): Promise<Cluster> => {
  const path = join(directory, 'cluster')
  const isCreated = existsSync(path)
  if (isCreated && !existsSync(join(directory, PASSWORD_FILE)))
    throw new StartupError(
      `The file ${join(directory, PASSWORD_FILE)} is missing: put it back, or remove ${directory}.`,
    )
  try {
    const password = await ensurePassword(directory, launch)
    if (!isCreated) await initialise(directory, binaries, launch)
    return { path, user: USER, password }
  } catch (error) {
    const refusal = directoryRefusal(directory, error instanceof StartupError ? error.cause : error)
    throw refusal instanceof StartupError ? refusal : error
  }
}

const commandOf = async (pid: number): Promise<string> => {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ')
  } catch {
    if (process.platform === 'linux') return ''
    const listed = await run('ps', ['-o', 'command=', '-p', `${pid}`]).catch(() => ({ stdout: '' }))
    return listed.stdout
  }
}

const goneWithin = async (isServer: () => Promise<boolean>, maxMs: number): Promise<boolean> => {
  const deadline = performance.now() + maxMs
  while (await isServer()) {
    if (performance.now() >= deadline) return false
    await sleep(POLL_MS)
  }
  return true
}

/**
 * Ends a server that still runs on the cluster and removes its postmaster.pid. The caller holds the lock of the
 * directory, so server has no supervisor any more. If its pid now belongs to another program, only the file is
 * removed, since Postgres would take any living process for a server and refuse to start. Resolves to whether there was a server,
 * whose port may be in use for a moment longer.
 */
export const endOrphan = async (cluster: string): Promise<boolean> => {
  const pidFile = join(cluster, 'postmaster.pid')
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10)
  if (!(pid > 1)) return false
  const isServer = async () => (await commandOf(pid)).includes(cluster)
  const wasServer = await isServer()
  if (wasServer) signalProcess(pid, 'SIGINT')
  if (!(await goneWithin(isServer, FAST_SHUTDOWN_MAX_MS))) {
    // The server does not react to a signal: it is stopped or stuck. Acknowledged writes are in the WAL.
    signalProcess(pid, 'SIGKILL')
    await goneWithin(isServer, KILL_MAX_MS)
  }
  await rm(pidFile, { force: true })
  return wasServer
}
