import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endProcess, hasEnded } from '../../src/childProcesses/endProcess.ts'
import { findFreePort } from '../../src/embedded/freePorts.ts'
import type { CleanupStack } from '../../src/lib/cleanupStack.ts'
import { UNLIMITED_SETTINGS } from '../support/limits.ts'
import type { Build } from '../support/builds.ts'

/** The places of the instances. A place keeps its port and its data directory when its instance is replaced. */

export const ROLES = { api: 'api', feeds: 'projector,publisher,worker' } as const

export type Place = {
  readonly name: string
  readonly api: string
  /** The build that runs here. */
  readonly build: () => Build | undefined
  /** Ends the instance, if there is one, and starts one of this build. Resolves when it is ready. */
  readonly replaceBy: (build: Build) => Promise<Replacement>
}

export type Replacement = { readonly endedAfterMs: number; readonly readyAfterMs: number }

const POLL_MS = 50
const QUIET = ['--disable-warning=ExperimentalWarning', '--disable-warning=TimeoutNegativeWarning']
const READY_MAX_MS = 180_000
/** The service ends within 20 s. */
const END_MAX_MS = 30_000
const LAST_LINES = 20

export type PlaceOptions = {
  readonly name: string
  readonly role: keyof typeof ROLES
  readonly folder: string
  readonly settings: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** Long because its functions share the running instance. */
export const openPlace = async (options: PlaceOptions, cleanup: CleanupStack): Promise<Place> => {
  const { name, role, folder, settings, signal } = options
  const dataDir = join(folder, name)
  const output = join(dataDir, 'output.log')
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const port = await findFreePort('127.0.0.1')
  const api = `http://127.0.0.1:${port}`
  let running: { readonly child: ChildProcess; readonly build: Build } | undefined

  const failure = async (what: string): Promise<Error> => {
    const lines = (await readFile(output, 'utf8')).trimEnd().split('\n').slice(-LAST_LINES)
    return new Error(`${name} ${what}:\n${lines.join('\n')}`)
  }
  const start = async (build: Build): Promise<ChildProcess> => {
    const file = await open(output, 'a')
    const { PATH, HOME } = process.env
    const places = { PORT: String(port), LEDGER_DATA_DIR: dataDir, LEDGER_ROLES: ROLES[role], LEDGER_PROCESSES: '1' }
    // In a process group of its own, so that Ctrl-C reaches the rehearsal only.
    const child = spawn(process.execPath, [...QUIET, 'src/main.ts'], {
      cwd: build.root,
      env: { PATH, HOME, METRICS_PORT: 'off', ...UNLIMITED_SETTINGS, ...settings, ...places },
      detached: true,
      stdio: ['ignore', file.fd, file.fd],
    })
    await once(child, 'spawn')
    await file.close()
    return child
  }
  const untilReady = async (child: ChildProcess): Promise<void> => {
    const deadlineMs = performance.now() + READY_MAX_MS
    while ((await fetch(`${api}/readyz`, { signal }).catch(() => undefined))?.ok !== true) {
      signal.throwIfAborted()
      if (hasEnded(child)) {
        running = undefined
        throw await failure('ended before it was ready')
      }
      if (performance.now() > deadlineMs) throw await failure(`was not ready in ${READY_MAX_MS / 1_000} s`)
      await sleep(POLL_MS)
    }
  }
  const end = async (): Promise<void> => {
    if (running === undefined) return
    const { child } = running
    if (hasEnded(child)) throw await failure('ended by itself')
    await endProcess(child, 'SIGTERM', END_MAX_MS)
    if (child.exitCode !== 0) throw await failure(`ended with ${child.exitCode ?? child.signalCode}`)
  }
  cleanup.defer(async () => {
    if (running) await endProcess(running.child, 'SIGTERM', END_MAX_MS)
  })
  return {
    name,
    api,
    build: () => running?.build,
    replaceBy: async build => {
      const beganMs = performance.now()
      await end()
      const endedAfterMs = performance.now() - beganMs
      signal.throwIfAborted()
      running = { child: await start(build), build }
      await untilReady(running.child)
      return { endedAfterMs, readyAfterMs: performance.now() - beganMs }
    },
  }
}
