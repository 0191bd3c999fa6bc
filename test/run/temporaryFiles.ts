import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The folder of temporary files of a run: in memory where there is room, because the databases and brokers of the tests wait
 * for the disk more than for anything else. Tests find it by TMPDIR (`os.tmpdir()`).
 */

const IN_MEMORY = '/dev/shm'
const NAME = 'ledger-tests'
const ROOM_MIN_BYTES = 12 * 1024 ** 3
/** A Postgres that does not run as root must reach its data. */
const MODE = 0o711

const hasRoom = (folder: string): boolean => {
  if (!existsSync(folder)) return false
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize >= ROOM_MIN_BYTES
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const remove = (folder: string): void =>
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })

/** Folders of runs that were killed hold memory until they are removed. */
const removeAbandoned = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    const [, pid] = new RegExp(`^${NAME}-(\\d+)-`).exec(name) ?? []
    if (pid !== undefined && !isAlive(Number(pid))) remove(join(parent, name))
  }
}

/**
 * The folder for the temporary files of this process, and its removal. Undefined where TMPDIR is set, or where there is no
 * room in memory: the tests then use the usual folder.
 */
export const openTemporaryFiles = (
  parent = IN_MEMORY,
  { isSet = process.env['TMPDIR'] !== undefined, isRoomy = hasRoom(parent) } = {},
): { readonly folder: string; readonly remove: () => void } | undefined => {
  if (isSet || !isRoomy) return undefined
  removeAbandoned(parent)
  const folder = mkdtempSync(join(parent, `${NAME}-${process.pid}-`))
  chmodSync(folder, MODE)
  return { folder, remove: () => remove(folder) }
}
