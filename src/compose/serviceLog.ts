import { appendFile, chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import type { Config } from '../config.ts'
import type { Log } from '../ports.ts'

/** The log of a process. */

/** Readable by its owner alone: the log has the names of callers, and failures. */
const LOG_MODE = 0o600
/** Lines are written together, because a write for each request takes longer than the line itself. */
const BUFFERED_BYTES = 4_096
const FLUSH_MS = 100

export type OpenedLog = {
  readonly log: Log
  /** The file of the log, or `stdout`. */
  readonly place: string
  readonly flush: () => Promise<void>
}

/** Several processes append to one file; then the lines have the name of their process. */
export const openLog = async (
  { dataDir, logLevel, databaseUrl }: Pick<Config, 'dataDir' | 'logLevel' | 'databaseUrl'>,
  processName?: string,
): Promise<OpenedLog> => {
  // With an external database the log goes to stdout, as containers expect; at a terminal it would hide the addresses.
  const place = databaseUrl === undefined ? join(dataDir, 'ledger.log') : 'stdout'
  const isFile = place !== 'stdout'
  const destination = pino.destination({
    dest: isFile ? place : 1,
    sync: false,
    minLength: BUFFERED_BYTES,
    periodicFlush: FLUSH_MS,
    ...(isFile ? { mode: LOG_MODE } : {}),
  })
  // `mode` applies to a new file; the file of an older version may be readable by others.
  if (isFile) await appendFile(place, '', { mode: LOG_MODE }).then(() => chmod(place, LOG_MODE))
  const base = processName === undefined ? null : { process: processName }
  const log = pino({ level: logLevel, base, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return { log, place, flush: async () => destination.flushSync() }
}
