/**
 * One directory, one process. The lock is a SQLite file held in an exclusive transaction: the kernel drops it with the
 * process, however that ends, so a lock can never be stale, a pid that was given to another program cannot be mistaken
 * for the holder, and two processes that take over at once cannot both succeed. A file that only names a pid has all
 * three faults. The pid is written beside the lock for the message alone.
 */

import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { StartupError, systemCode } from '../startupError.ts'

export type DataDirectory = {
  /** Absolute. */
  readonly path: string
  /** Gives the directory up; twice is once. */
  release(): Promise<void>
}

const LOCK_FILE = 'lock'
const HOLDER_FILE = 'lock.pid'
const OWNER_ONLY = 0o700
const OTHERS = 0o077
/** Of directories that everybody may write into, such as /tmp. */
const STICKY = 0o1000
const RETRY_MS = 50
const SQLITE_BUSY = 5
const SQLITE_FULL = 13

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

/** Turns a system error about `path` into a sentence; what it does not know, it returns as it is. */
export const directoryRefusal = (path: string, error: unknown): unknown => {
  const code = systemCode(error)
  const reason = code === undefined ? undefined : reasons[code]
  return reason === undefined ? error : new StartupError(`The data directory ${path} ${reason} (${code}).`, error)
}

const sqliteCode = (error: unknown): number | undefined =>
  error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined

/** The held lock, or undefined while another process, or another part of this one, holds it. */
const tryLock = (path: string): DatabaseSync | undefined => {
  const lock = new DatabaseSync(join(path, LOCK_FILE), { timeout: 0 })
  try {
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock.close()
    if (sqliteCode(error) === SQLITE_BUSY) return undefined
    if (sqliteCode(error) === SQLITE_FULL) throw Object.assign(new Error('disk full'), { code: 'ENOSPC' })
    throw new StartupError(`The data directory ${path} cannot be locked.`, error)
  }
}

const heldBy = async (path: string): Promise<StartupError> => {
  const pid = await readFile(join(path, HOLDER_FILE), 'utf8').catch(() => '')
  const holder = pid === '' ? 'another process' : `the process with pid ${pid.trim()}`
  return new StartupError(`The data directory ${path} is in use by ${holder}.`)
}

const lockWithin = async (path: string, waitMs: number): Promise<DatabaseSync> => {
  const deadline = performance.now() + waitMs
  for (;;) {
    const lock = tryLock(path)
    if (lock !== undefined) return lock
    if (performance.now() >= deadline) throw await heldBy(path)
    await sleep(RETRY_MS)
  }
}

/** An older version, or a copy, may have left it open to others. A directory of others, or of all, is left as it is. */
const keepPrivate = async (path: string): Promise<void> => {
  const { mode, uid } = await stat(path)
  const isOurs = uid === process.getuid?.() && (mode & STICKY) === 0
  if (isOurs && (mode & OTHERS) !== 0) await chmod(path, OWNER_ONLY)
}

const create = async (path: string): Promise<void> => {
  await mkdir(path, { recursive: true, mode: OWNER_ONLY })
  if (!(await stat(path)).isDirectory()) throw Object.assign(new Error(path), { code: 'ENOTDIR' })
  await keepPrivate(path)
  // Written before the lock is asked for, because SQLite tells less about what is wrong with a directory.
  const probe = join(path, `.probe-${process.pid}`)
  await writeFile(probe, 'x')
  await rm(probe)
}

/**
 * Creates the directory if it is missing and takes it for this process alone.
 * `waitMs`: how long to wait for a holder that is just ending; not at all by default.
 * Throws a StartupError when it is not a directory, not writable, on a full disk, or in use (naming the pid).
 */
export const openDataDirectory = async (directory: string, { waitMs = 0 } = {}): Promise<DataDirectory> => {
  const path = resolve(directory)
  try {
    await create(path)
    const lock = await lockWithin(path, waitMs)
    await writeFile(join(path, HOLDER_FILE), `${process.pid}\n`)
    return { path, release: async () => void (lock.isOpen && lock.close()) }
  } catch (error) {
    throw directoryRefusal(path, error)
  }
}
