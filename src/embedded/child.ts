/**
 * Starts a part of the service as a process of its own and keeps it up. States: starting (until it said its address and
 * `ready`), up, down (it died; a restart on the same port and data is due), stopped (by us, or given up). A part that
 * dies at its first start is not restarted: its reason is the caller's answer.
 */

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { StartupError, systemCode } from '../startupError.ts'

export { type PartOptions, type RunningPart, runPart } from './part.ts'

export type ChildOptions = {
  /** For messages: `postgres`. */
  readonly name: string
  /** File URL or path of a module that calls runPart. */
  readonly module: string | URL
  readonly args: readonly string[]
  /** Each line that the part writes on stderr, and on stdout after it is ready. */
  readonly log?: (line: string) => void
  /** Called once, when the part died too often within a minute and is not restarted any more. */
  readonly onExit?: (reason: Error) => void
  readonly startMaxMs?: number
  readonly stopMaxMs?: number
  readonly deathsMax?: number
}

export type Child = {
  /** Stays the same over restarts. */
  readonly address: string
  /** Of the process that runs now. */
  readonly pid: number
  /** Ends the part in good order, by force after the grace; twice is once. */
  stop(): Promise<void>
}

type Process = ChildProcessByStdio<Writable, Readable, Readable>

const START_MAX_MS = 90_000
const STOP_MAX_MS = 20_000
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 2_000
const DEATHS_WINDOW_MS = 60_000
const DEATHS_MAX = 10
const SAID_LINES_MAX = 20

const modulePath = (module: string | URL): string =>
  module instanceof URL || module.startsWith('file:') ? fileURLToPath(module) : module

/** `detached`: Ctrl-C at the terminal reaches the service alone, which then stops its parts in order. */
const spawnModule = (module: string | URL, args: readonly string[]): Process =>
  spawn(process.execPath, [modulePath(module), ...args, '--with-parent'], { detached: true, stdio: 'pipe' })

const hasExited = (child: Process): boolean => child.exitCode !== null || child.signalCode !== null

const exited = async (child: Process): Promise<void> => {
  if (hasExited(child) || child.pid === undefined) return
  await new Promise<void>(resolve => child.once('exit', () => resolve()))
}

/** The whole group, so that nothing that the part started outlives it. */
const killGroup = (child: Process): void => {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if (systemCode(error) !== 'ESRCH') throw error
  }
}

const stopProcess = async (child: Process, stopMaxMs: number): Promise<void> => {
  const late = setTimeout(() => killGroup(child), stopMaxMs)
  child.kill('SIGTERM')
  await exited(child)
  clearTimeout(late)
}

/** The address that the part says before `ready`. Rejects when it ends first, with its last words on stderr. */
const untilReady = async (child: Process, { name, log }: ChildOptions): Promise<string> => {
  const said: string[] = []
  createInterface({ input: child.stderr }).on('line', line => {
    if (said.push(line) > SAID_LINES_MAX) said.shift()
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
      reject(new StartupError(`The part ${name} cannot be started: ${error.message}`, error)),
    )
    // 'close' comes after the last line of stderr, 'exit' may come before it.
    child.once('close', () =>
      reject(new StartupError(`The part ${name} did not start: ${said.join(' ') || 'it said nothing'}`)),
    )
  })
}

/** A running process and its address. Throws a StartupError when it ends or the deadline passes before it is ready. */
const startProcess = async (options: ChildOptions, args: readonly string[], starting: (child: Process) => void) => {
  const startMaxMs = options.startMaxMs ?? START_MAX_MS
  const child = spawnModule(options.module, args)
  // A part that is gone does not read its stdin; its exit is what tells us.
  child.stdin.on('error', () => undefined)
  starting(child)
  let late: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    late = setTimeout(
      () => reject(new StartupError(`The part ${options.name} was not ready in ${startMaxMs} ms.`)),
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

/** The arguments of a restart: those who hold the address must find the part where it was. */
const onPort = (args: readonly string[], address: string): readonly string[] => {
  const { port } = new URL(address)
  const at = args.indexOf('--port')
  const others = at === -1 ? args : args.toSpliced(at, 2)
  return port === '' ? args : [...others, '--port', port]
}

/** Counts the deaths within the window, this one included. */
const deathCounter = (): (() => number) => {
  let deaths: readonly number[] = []
  return () => {
    const now = performance.now()
    deaths = [...deaths.filter(at => now - at < DEATHS_WINDOW_MS), now]
    return deaths.length
  }
}

/**
 * Starts a part and resolves when it is ready. Rejects with a StartupError that says what the part said last on stderr when
 * its first start fails. Later deaths are healed here, with growing pauses; see `onExit` for the end of that.
 */
export const startChild = async (options: ChildOptions): Promise<Child> => {
  const { name, log, onExit, deathsMax = DEATHS_MAX, stopMaxMs = STOP_MAX_MS } = options
  let current: Process | undefined
  const starting = (child: Process) => void (current = child)
  const { address, child } = await startProcess(options, options.args, starting)
  const args = onPort(options.args, address)
  const stopping = new AbortController()
  const countDeath = deathCounter()

  const supervise = async (): Promise<void> => {
    for (;;) {
      await exited(current ?? child)
      if (stopping.signal.aborted) return
      const deaths = countDeath()
      if (deaths >= deathsMax) return onExit?.(new Error(`The part ${name} ended ${deaths} times within a minute.`))
      log?.(`The part ${name} ended unexpectedly and is started again.`)
      const pauseMs = Math.min(BACKOFF_MIN_MS * 2 ** (deaths - 1), BACKOFF_MAX_MS)
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined)
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
