import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { systemCode } from '../lib/startupError.ts'

/**
 * Exclusive locks between processes of one machine. The lock is a SQLite file held in an exclusive transaction. The
 * kernel releases it with the process, so it can never be stale; no reused pid is taken for the holder; and two
 * concurrent takeovers cannot both succeed. A file with a pid has all three faults.
 */

export type FileLock = {
  /** Idempotent. */
  readonly release: () => void
}

const SQLITE_BUSY = 5
/** Far more than the moment for which `isLocked` reads the file. */
const READER_MAX_MS = 50
const SQLITE_FULL = 13

const sqliteCode = (error: unknown): number | undefined =>
  error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined

const OWNER_ONLY = 0o600

/** A file of another owner keeps its mode, and may be a lock all the same. */
const keepPrivate = (path: string): void => {
  try {
    chmodSync(path, OWNER_ONLY)
  } catch (error) {
    if (systemCode(error) !== 'EPERM') throw error
  }
}

/**
 * SQLite creates its files readable for others; the journal gets the mode of the file. A file that is there is not
 * opened here, because to close it would release the lock that this process may hold on it.
 */
const createPrivate = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY))
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    keepPrivate(path)
  }
}

/**
 * The lock of this file, which is created; undefined if another process, or another caller in this one, holds it for
 * `waitMs`. Throws a system error with the code ENOSPC on a full disk, and SQLite's error where the file cannot be locked.
 */
export const tryFileLock = (path: string, waitMs = READER_MAX_MS): FileLock | undefined => {
  createPrivate(path)
  const lock = new DatabaseSync(path, { timeout: waitMs })
  try {
    lock.exec('begin exclusive')
    return { release: () => void (lock.isOpen && lock.close()) }
  } catch (error) {
    lock.close()
    if (sqliteCode(error) === SQLITE_BUSY) return undefined
    throw sqliteCode(error) === SQLITE_FULL ? Object.assign(new Error('disk full'), { code: 'ENOSPC' }) : error
  }
}

/** Whether a process holds the lock of this file. Does not take it, and creates nothing. */
export const isLocked = (path: string): boolean => {
  if (!existsSync(path)) return false
  const lock = new DatabaseSync(path, { readOnly: true, timeout: 0 })
  try {
    lock.prepare('select count(*) from sqlite_schema').get()
    return false
  } catch (error) {
    if (sqliteCode(error) === SQLITE_BUSY) return true
    throw error
  } finally {
    lock.close()
  }
}
