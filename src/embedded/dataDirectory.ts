/** Ownership of the data directory by one process. The pid beside the lock tells who holds it, not whether. */

import { chmod, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createFolders } from '../lib/folders.ts'
import { StartupError, systemCode } from '../lib/startupError.ts'
import { type FileLock, isLocked, tryFileLock } from './fileLock.ts'

export type DataDirectory = {
  /** Absolute. */
  readonly path: string
  /** Releases the directory. Idempotent. */
  readonly release: () => Promise<void>
}

const LOCK_FILE = 'lock'
const HOLDER_FILE = 'lock.pid'
const OWNER_ONLY = 0o700
const OWNER_ONLY_FILE = 0o600
const OTHERS = 0o077
/** The sticky bit of directories such as /tmp, which everybody may write into. */
const STICKY = 0o1000
const RETRY_MS = 50

const reasons: Readonly<Record<string, string>> = {
  EEXIST: 'is not a directory',
  ENOTDIR: 'is not a directory',
  EACCES: 'is not writable',
  EPERM: 'is not writable',
  EROFS: 'is not writable',
  ENOENT: 'cannot be created',
  ENOSPC: 'has no space left on its disk',
  EDQUOT: 'has no space left on its disk',
}

/** A sentence for a system error about `path`; unknown errors are returned unchanged. */
export const directoryRefusal = (path: string, error: unknown): unknown => {
  const code = systemCode(error)
  const reason = code === undefined ? undefined : reasons[code]
  return reason === undefined ? error : new StartupError(`The data directory ${path} ${reason} (${code}).`, error)
}

/** The held lock, or undefined while another process, or another caller in this one, holds it. */
const tryLock = (path: string): FileLock | undefined => {
  try {
    return tryFileLock(join(path, LOCK_FILE))
  } catch (error) {
    if (systemCode(error) === 'ENOSPC') throw error
    throw new StartupError(`The data directory ${path} cannot be locked.`, error)
  }
}

const heldBy = async (path: string): Promise<StartupError> => {
  const pid = await readFile(join(path, HOLDER_FILE), 'utf8').catch(() => '')
  const holder = pid === '' ? 'another process' : `process ${pid.trim()}`
  return new StartupError(
    `The data directory ${path} is in use by ${holder}, which runs a service on it. Stop it first.`,
  )
}

/** The pid of the process that holds the directory; undefined while none does, also if a killed one has left its pid. */
export const holderOf = async (directory: string): Promise<number | undefined> => {
  if (!isLocked(join(directory, LOCK_FILE))) return undefined
  return Number(await readFile(join(directory, HOLDER_FILE), 'utf8').catch(() => ''))
}

const lockWithin = async (path: string, waitMs: number): Promise<FileLock> => {
  const deadline = performance.now() + waitMs
  for (;;) {
    const lock = tryLock(path)
    if (lock !== undefined) return lock
    if (performance.now() >= deadline) throw await heldBy(path)
    await sleep(RETRY_MS)
  }
}

/** A copy may have left it readable for others. Directories of other owners, and shared ones, stay as they are. */
const keepPrivate = async (path: string): Promise<void> => {
  const { mode, uid } = await stat(path)
  const isOurs = uid === process.getuid?.() && (mode & STICKY) === 0
  if (isOurs && (mode & OTHERS) !== 0) await chmod(path, OWNER_ONLY)
}

const create = async (path: string): Promise<void> => {
  await createFolders(path, OWNER_ONLY)
  await keepPrivate(path)
  // A write test before the lock, because SQLite's errors about a directory are less specific.
  const probe = join(path, `.probe-${process.pid}`)
  await writeFile(probe, 'x', { mode: OWNER_ONLY_FILE })
  await rm(probe)
}

const writeHolder = async (path: string): Promise<void> => {
  const file = join(path, HOLDER_FILE)
  await writeFile(file, `${process.pid}\n`, { mode: OWNER_ONLY_FILE })
  // The mode counts for a new file only.
  await chmod(file, OWNER_ONLY_FILE)
}

/**
 * Creates the directory and locks it; `waitMs` for a holder that is about to end. Throws a StartupError if it is no
 * directory, not writable, on a full disk, or in use.
 */
export const openDataDirectory = async (directory: string, { waitMs = 0 } = {}): Promise<DataDirectory> => {
  const path = resolve(directory)
  try {
    await create(path)
    const lock = await lockWithin(path, waitMs)
    await writeHolder(path)
    return { path, release: async () => lock.release() }
  } catch (error) {
    throw directoryRefusal(path, error)
  }
}
