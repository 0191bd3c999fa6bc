import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startPostgres, temporaryFolder } from '../embedded/childProcesses.ts'
import { removeFolder } from './folders.ts'

/**
 * A new Postgres cluster with empty databases, made once in each process. Its copies save the tests an initdb for each
 * service. The tests of the embedded Postgres and of `npm run demo` run initdb themselves.
 */

const run = promisify(execFile)
const PRIVATE = 0o700
const PARTS = ['cluster', 'password'] as const

let folder: Promise<string> | undefined

const prepare = async (): Promise<string> => {
  const path = await temporaryFolder()
  const postgres = await startPostgres(path)
  await postgres.stop()
  return path
}

const canBeMade = (directory: string): Promise<boolean> =>
  mkdir(directory, { recursive: true, mode: PRIVATE }).then(
    () => true,
    () => false,
  )

/**
 * Puts a cluster into the data directory of a Postgres that has never started. Any other is left as it is, and so is one
 * that cannot be created, which the service itself must report.
 */
export const putPreparedCluster = async (dataDir: string): Promise<void> => {
  if (PARTS.some(part => existsSync(join(dataDir, part)))) return
  if (!(await canBeMade(dataDir))) return
  const prepared = await (folder ??= prepare())
  // `-a` keeps the owner, who is not the user of the tests if that is root.
  await run('cp', ['-a', ...PARTS.map(part => join(prepared, part)), dataDir])
}

/** For the root hook. */
export const removePreparedCluster = async (): Promise<void> => {
  const path = await folder?.catch(() => undefined)
  folder = undefined
  if (path !== undefined) await removeFolder(path)
}
