/**
 * The child's side of the protocol between the service and its child processes: the child prints its address on one
 * line of stdout, then `ready` on the next, and ends when it is signalled or when its parent has ended.
 */

import { parseArgs } from 'node:util'
import { StartupError } from '../lib/startupError.ts'

export type RunningService = {
  /** A connection string or URL with the port on which the child really listens. */
  readonly address: string
  /** Ends the child's work gracefully; acknowledged data is on disk when it resolves. */
  close(): Promise<void>
  /** Settles if the work ended by itself; the error is the reason. */
  readonly ended?: Promise<Error>
}

export type ServiceOptions = { readonly dataDir: string; readonly port: number; readonly signal: AbortSignal }

type Start = (options: ServiceOptions) => Promise<RunningService>

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

/**
 * Aborts at SIGTERM, SIGINT, and with `--with-parent` when stdin closes: the kernel closes it however the parent ends.
 */
const stopSignal = (withParent: boolean): AbortSignal => {
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => stop.abort())
  if (withParent) {
    process.stdin.on('end', () => stop.abort()).on('error', () => stop.abort())
    process.stdin.resume()
  }
  // A parent that has ended cannot read; writing to it must not end the child before it has closed gracefully.
  process.stdout.on('error', () => stop.abort())
  process.stderr.on('error', () => stop.abort())
  return stop.signal
}

const aborted = async (signal: AbortSignal): Promise<undefined> => {
  if (signal.aborted) return undefined
  return await new Promise(resolve => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}

/** Undefined if the child was stopped before it was up; errors of `start` are then ignored. */
const startUnlessStopped = async (start: Start, options: ServiceOptions): Promise<RunningService | undefined> => {
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
  const service = await startUnlessStopped(start, { dataDir, port, signal })
  if (service === undefined) return
  if (!signal.aborted) process.stdout.write(`${service.address}\nready\n`)
  const unexpected = await Promise.race([aborted(signal), ...(service.ended === undefined ? [] : [service.ended])])
  // Without a parent nothing else would end a child that hangs here.
  setTimeout(() => process.exit(1), CLOSE_MAX_MS).unref()
  await service.close()
  if (unexpected !== undefined) throw unexpected
}

const report = (error: unknown): void => {
  const text = error instanceof StartupError ? error.message : error instanceof Error ? error.stack : String(error)
  process.stderr.write(`${text}\n`)
}

/**
 * Runs as a child process with the options `--data-dir D`, `--port P` (0: a free one), `--with-parent`. `start` may
 * reject with any error once its signal has aborted. Exit code 0 after a graceful stop; else 1, after one sentence on
 * stderr.
 */
export const runAsChild = async (start: Start): Promise<never> => {
  try {
    await run(start)
  } catch (error) {
    report(error)
    process.exit(1)
  }
  process.exit(0)
}
