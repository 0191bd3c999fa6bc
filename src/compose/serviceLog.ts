import { appendFile, chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import type { Config } from '../settings/config.ts'
import type { Logger } from '../ports.ts'
import { withoutSecrets } from '../lib/redaction.ts'

/** The log of a process: JSON lines, with the correlation id and the trace id where a line is of a request, and no secret. */

/** Readable by its owner alone: the log has the names of callers, and failures. */
const LOG_MODE = 0o600
/** A write for each request takes longer than its line. Processes share an output, where larger writes may mix. */
const BUFFERED_BYTES = 4_096
const FLUSH_MS = 100

export type OpenedLog = {
  readonly logger: Logger
  /** The file of the log, or `stdout`. */
  readonly place: string
  readonly flush: () => Promise<void>
}

/** Flushes lines within FLUSH_MS, until a whole period had none and no write in flight: an idle process has no timer. */
const flushedSoon = (destination: ReturnType<typeof pino.destination>): ((line: string) => void) => {
  let timer: NodeJS.Timeout | undefined
  let hasLines = false
  let isWritten = false
  destination.on('drain', () => {
    isWritten = true
  })
  const flush = (): void => {
    const isLast = !hasLines && isWritten
    hasLines = isWritten = false
    destination.flush()
    if (!isLast) return
    clearInterval(timer)
    timer = undefined
  }
  return line => {
    hasLines = true
    destination.write(line)
    timer ??= setInterval(flush, FLUSH_MS).unref()
  }
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
    ...(isFile ? { mode: LOG_MODE } : {}),
  })
  // `mode` applies to a new file; one that is copied may be readable by others.
  if (isFile) await appendFile(place, '', { mode: LOG_MODE }).then(() => chmod(place, LOG_MODE))
  const base = processName === undefined ? null : { process: processName }
  const write = flushedSoon(destination)
  const lines = { write: (line: string): void => write(withoutSecrets(line)) }
  // Without a serializer an Error is written as an empty object.
  const serializers = { error: pino.stdSerializers.err }
  const logger = pino({ level: logLevel, base, serializers, timestamp: pino.stdTimeFunctions.isoTime }, lines)
  return { logger, place, flush: async () => destination.flushSync() }
}
