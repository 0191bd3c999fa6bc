import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { pidsOf } from '../embedded/childProcesses.ts'

/** Runs a command in a copy of the tree and ends every process that it started. */

export type Ran = {
  readonly code: number | null
  readonly isLate: boolean
  readonly output: string
  readonly seconds: number
}

export type Where = {
  /** The working directory. */
  readonly folder: string
  /** For temporary files: what the command started is known by this path among its arguments. */
  readonly scratch: string
  readonly limitMs: number
  readonly signal: AbortSignal
}

const MS_PER_SECOND = 1_000
/** The child processes of a service notice that their parent has gone, and end in good order. */
const CHILDREN_END_MAX_MS = 10_000
const POLL_MS = 50

const killGroup = ({ pid }: ChildProcess): void => {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has ended by itself.
  }
}

const killPid = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

const leftIn = (scratch: string): Promise<readonly number[]> => pidsOf(scratch).catch(() => [])

/** The embedded services have process groups of their own, and so are not reached by killing the group of their parent. */
const endChildren = async (scratch: string): Promise<void> => {
  const deadlineMs = performance.now() + CHILDREN_END_MAX_MS
  while ((await leftIn(scratch)).length > 0 && performance.now() < deadlineMs) await sleep(POLL_MS)
  for (const pid of await leftIn(scratch)) killPid(pid)
}

const environment = (folder: string, scratch: string): NodeJS.ProcessEnv => ({
  ...process.env,
  TMPDIR: scratch,
  PATH: `${folder}/node_modules/.bin:${process.env['PATH'] ?? ''}`,
})

/** A group of its own, so that Ctrl-C at the terminal reaches this process alone, which then ends the group. */
const start = ([program = '', ...args]: readonly string[], { folder, scratch }: Where): ChildProcess =>
  spawn(program, args, {
    cwd: folder,
    env: environment(folder, scratch),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })

const once = (child: ChildProcess, event: 'exit' | 'close'): Promise<number | null> =>
  new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once(event, resolve)
  })

const collect = (child: ChildProcess): (() => string) => {
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => void (output += text))
  return () => output
}

/** Resolves when the command and every process that it started have ended. Throws when the signal is aborted. */
export const run = async (command: readonly string[], where: Where): Promise<Ran> => {
  where.signal.throwIfAborted()
  const beganMs = performance.now()
  const child = start(command, where)
  const output = collect(child)
  const closed = once(child, 'close')
  let isLate = false
  const late = setTimeout(() => {
    isLate = true
    killGroup(child)
  }, where.limitMs)
  const abort = (): void => killGroup(child)
  where.signal.addEventListener('abort', abort, { once: true })
  const code = await once(child, 'exit')
  const seconds = (performance.now() - beganMs) / MS_PER_SECOND
  clearTimeout(late)
  where.signal.removeEventListener('abort', abort)
  await endChildren(where.scratch)
  await closed
  where.signal.throwIfAborted()
  return { code, isLate, output: output(), seconds }
}
