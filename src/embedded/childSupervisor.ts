/**
 * Supervision of a child process. States: starting (until it printed its address and `ready`), up, down (it ended; a
 * restart with the same port and data is due), stopped (by `stop`, or given up). A child that ends during its first
 * start is not restarted: its reason is reported to the caller.
 */

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { StartupError, systemCode } from '../lib/startupError.ts'
import { backoffMs, sleep } from '../lib/time.ts'

export type ChildOptions = {
  /** The name in messages, such as `postgres`. */
  readonly name: string
  /** File URL or path of a module that calls runAsChild. */
  readonly module: string | URL
  readonly args: readonly string[]
  /** Options of Node, in front of the module. */
  readonly nodeOptions?: readonly string[]
  /** Variables beside those of this process. */
  readonly variables?: Readonly<Record<string, string>>
  /** Called with each line on stderr, and with each line on stdout after the child is ready. */
  readonly log?: (line: string) => void
  /** Called once, when the child ended too often within a minute and is not restarted any more. */
  readonly onExit?: (reason: Error) => void
  readonly startMaxMs?: number
  readonly stopMaxMs?: number
  readonly exitsMax?: number
}

export type Child = {
  /** The same after restarts. */
  readonly address: string
  /** The pid of the present process. */
  readonly pid: number
  /** Ends the child gracefully, by force after the grace. Idempotent. */
  stop(): Promise<void>
}

type SpawnedProcess = ChildProcessByStdio<Writable, Readable, Readable>

const START_MAX_MS = 90_000
const STOP_MAX_MS = 20_000
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 2_000
const EXITS_WINDOW_MS = 60_000
const EXITS_MAX = 10
const OUTPUT_LINES_MAX = 20

const modulePath = (module: string | URL): string =>
  module instanceof URL || module.startsWith('file:') ? fileURLToPath(module) : module

/** `detached`: Ctrl-C at the terminal reaches the service only, which then stops its children in order. */
const spawnModule = (
  { module, nodeOptions = [], variables = {} }: ChildOptions,
  args: readonly string[],
): SpawnedProcess =>
  spawn(process.execPath, [...nodeOptions, modulePath(module), ...args, '--with-parent'], {
    detached: true,
    env: { ...process.env, ...variables },
    stdio: 'pipe',
  })

const hasExited = (child: SpawnedProcess): boolean => child.exitCode !== null || child.signalCode !== null

const exited = async (child: SpawnedProcess): Promise<void> => {
  if (hasExited(child) || child.pid === undefined) return
  await new Promise<void>(resolve => child.once('exit', () => resolve()))
}

/** Signals the process group, so no process that the child started outlives it. */
const killGroup = (child: SpawnedProcess): void => {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if (systemCode(error) !== 'ESRCH') throw error
  }
}

const stopProcess = async (child: SpawnedProcess, stopMaxMs: number): Promise<void> => {
  const late = setTimeout(() => killGroup(child), stopMaxMs)
  child.kill('SIGTERM')
  await exited(child)
  clearTimeout(late)
}

/** The address that the child prints before `ready`. Rejects with its last lines on stderr if it ends first. */
const untilReady = async (child: SpawnedProcess, { name, log }: ChildOptions): Promise<string> => {
  const output: string[] = []
  createInterface({ input: child.stderr }).on('line', line => {
    if (output.push(line) > OUTPUT_LINES_MAX) output.shift()
    log?.(line)
  })
  return await new Promise((resolve, reject) => {
    let address: string | undefined
    let ready = false
    createInterface({ input: child.stdout }).on('line', line => {
      if (ready) return log?.(line)
      ready = line === 'ready' && address !== undefined
      if (ready && address !== undefined) return resolve(address)
      address = line
    })
    child.once('error', error =>
      reject(new StartupError(`The process ${name} cannot be started: ${error.message}`, error)),
    )
    // 'close' comes after the last line of stderr, 'exit' may come before it.
    child.once('close', () =>
      reject(new StartupError(`The process ${name} did not start: ${output.join(' ') || 'it output nothing'}`)),
    )
  })
}

/** A running process and its address. Throws a StartupError if it ends, or the deadline passes, before it is ready. */
const startProcess = async (
  options: ChildOptions,
  args: readonly string[],
  starting: (child: SpawnedProcess) => void,
) => {
  const startMaxMs = options.startMaxMs ?? START_MAX_MS
  const child = spawnModule(options, args)
  // A child that has ended does not read its stdin; its end is reported by its exit.
  child.stdin.on('error', () => undefined)
  starting(child)
  let late: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    late = setTimeout(
      () => reject(new StartupError(`The process ${options.name} was not ready in ${startMaxMs} ms.`)),
      startMaxMs,
    )
  })
  try {
    return { child, address: await Promise.race([untilReady(child, options), deadline]) }
  } catch (error) {
    killGroup(child)
    throw error
  } finally {
    clearTimeout(late)
  }
}

/** The arguments of a restart, with the port of the first start, because clients have that address. */
const onPort = (args: readonly string[], address: string): readonly string[] => {
  const { port } = new URL(address)
  const at = args.indexOf('--port')
  const others = at === -1 ? args : args.toSpliced(at, 2)
  return port === '' ? args : [...others, '--port', port]
}

/** Counts the ends within the window, the present one included. */
const createExitCounter = (): (() => number) => {
  let exits: readonly number[] = []
  return () => {
    const now = performance.now()
    exits = [...exits.filter(at => now - at < EXITS_WINDOW_MS), now]
    return exits.length
  }
}

/**
 * Starts a child and resolves when it is ready. Rejects with a StartupError with the child's last lines on stderr if
 * the first start fails. Later ends are followed by a restart, with growing pauses; see `onExit` for the limit.
 */
export const startChild = async (options: ChildOptions): Promise<Child> => {
  const { name, log, onExit, exitsMax = EXITS_MAX, stopMaxMs = STOP_MAX_MS } = options
  let current: SpawnedProcess | undefined
  const starting = (child: SpawnedProcess) => void (current = child)
  const { address, child } = await startProcess(options, options.args, starting)
  const args = onPort(options.args, address)
  const stopping = new AbortController()
  const countExit = createExitCounter()

  const supervise = async (): Promise<void> => {
    for (;;) {
      await exited(current ?? child)
      if (stopping.signal.aborted) return
      const exits = countExit()
      if (exits >= exitsMax) return onExit?.(new Error(`The process ${name} ended ${exits} times within a minute.`))
      log?.(`The process ${name} ended unexpectedly and is started again.`)
      const pauseMs = backoffMs(exits - 1, BACKOFF_MIN_MS, BACKOFF_MAX_MS)
      await sleep(pauseMs, stopping.signal)
      if (stopping.signal.aborted) return
      await startProcess(options, args, starting).catch((error: Error) => log?.(error.message))
    }
  }
  const supervised = supervise()

  return {
    address,
    get pid() {
      return current?.pid ?? 0
    },
    async stop() {
      stopping.abort()
      await stopProcess(current ?? child, stopMaxMs)
      await supervised
    },
  }
}
