/**
 * The child's side of the protocol between the service and a part that it starts: the part prints its address on one
 * line of stdout, then `ready` on a line of its own, and ends by itself when it is told to, or when its parent is gone.
 */

import { parseArgs } from 'node:util'
import { StartupError } from '../startupError.ts'

export type RunningPart = {
  /** A connection string or URL, with the port that the part really listens on. */
  readonly address: string
  /** Ends the part in good order; what was acknowledged is on disk when it resolves. */
  close(): Promise<void>
  /** Settles when the part ended without being asked to; the error says why. */
  readonly ended?: Promise<Error>
}

export type PartOptions = { readonly dataDir: string; readonly port: number; readonly signal: AbortSignal }

type Start = (options: PartOptions) => Promise<RunningPart>

const PORT_MAX = 65_535
const CLOSE_MAX_MS = 25_000

const options = {
  'data-dir': { type: 'string' },
  port: { type: 'string', default: '0' },
  'with-parent': { type: 'boolean', default: false },
} as const

const parsePort = (text: string): number => {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= PORT_MAX) return port
  throw new StartupError(`--port must be a number from 0 to ${PORT_MAX}, not ${text}.`)
}

const readArguments = (): { dataDir: string; port: number; withParent: boolean } => {
  const { values } = parseArgs({ options })
  if (values['data-dir'] === undefined) throw new StartupError('--data-dir is missing.')
  return { dataDir: values['data-dir'], port: parsePort(values.port), withParent: values['with-parent'] }
}

/** Aborts at SIGTERM, SIGINT, and with `--with-parent` when stdin closes: the kernel closes it however the parent ends. */
const stopSignal = (withParent: boolean): AbortSignal => {
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => stop.abort())
  if (withParent) {
    process.stdin.on('end', () => stop.abort()).on('error', () => stop.abort())
    process.stdin.resume()
  }
  // A parent that is gone cannot read; writing to it must not end the part before it closed in good order.
  process.stdout.on('error', () => stop.abort())
  process.stderr.on('error', () => stop.abort())
  return stop.signal
}

const aborted = async (signal: AbortSignal): Promise<undefined> => {
  if (signal.aborted) return undefined
  return await new Promise(resolve => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}

/** The part, or undefined when it was told to stop before it was up: what start says then is of no interest. */
const startUnlessStopped = async (start: Start, options: PartOptions): Promise<RunningPart | undefined> => {
  try {
    return await start(options)
  } catch (error) {
    if (options.signal.aborted) return undefined
    throw error
  }
}

const run = async (start: Start): Promise<void> => {
  const { dataDir, port, withParent } = readArguments()
  const signal = stopSignal(withParent)
  const part = await startUnlessStopped(start, { dataDir, port, signal })
  if (part === undefined) return
  if (!signal.aborted) process.stdout.write(`${part.address}\nready\n`)
  const unexpected = await Promise.race([aborted(signal), ...(part.ended === undefined ? [] : [part.ended])])
  // Nobody is left to kill a part that hangs here when its parent is gone.
  setTimeout(() => process.exit(1), CLOSE_MAX_MS).unref()
  await part.close()
  if (unexpected !== undefined) throw unexpected
}

const report = (error: unknown): void => {
  const text = error instanceof StartupError ? error.message : error instanceof Error ? error.stack : String(error)
  process.stderr.write(`${text}\n`)
}

/**
 * Runs a part as this process: `--data-dir D`, `--port P` (0: a free one), `--with-parent`. `start` may reject with any
 * error once its signal aborted. Exit code 0 after an orderly stop; 1 otherwise, after one sentence on stderr.
 */
export const runPart = async (start: Start): Promise<never> => {
  try {
    await run(start)
  } catch (error) {
    report(error)
    process.exit(1)
  }
  process.exit(0)
}
