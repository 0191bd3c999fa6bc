import { DatabaseSync } from 'node:sqlite'

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
const SQLITE_FULL = 13

const sqliteCode = (error: unknown): number | undefined =>
  error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined

/**
 * The lock of this file, which is created; undefined while another process, or another caller in this one, holds it.
 * Throws a system error with the code ENOSPC on a full disk, and SQLite's error where the file cannot be locked.
 */
export const tryFileLock = (path: string): FileLock | undefined => {
  const lock = new DatabaseSync(path, { timeout: 0 })
  try {
    lock.exec('begin exclusive')
    return { release: () => void (lock.isOpen && lock.close()) }
  } catch (error) {
    lock.close()
    if (sqliteCode(error) === SQLITE_BUSY) return undefined
    throw sqliteCode(error) === SQLITE_FULL ? Object.assign(new Error('disk full'), { code: 'ENOSPC' }) : error
  }
}
