import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { systemCode } from '../lib/startupError.ts'

/**
 * A SQLite file in an exclusive transaction: the kernel releases the lock with the process, so it is never stale, no
 * reused pid counts as the holder, and two takeovers cannot both succeed.
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

/** SQLite creates files readable for others. An existing one is not opened: closing it would release this process's lock. */
const createPrivate = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY))
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    keepPrivate(path)
  }
}

/** Undefined if another holds it for `waitMs`. Throws ENOSPC on a full disk, and SQLite's error where it cannot lock. */
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
