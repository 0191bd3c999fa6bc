import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { pidsOf } from '../embedded/childProcesses.ts'

/** A runner of commands in a copy of the tree, which ends every process that a command started. */

export type CommandResult = {
  readonly code: number | null
  readonly isLate: boolean
  readonly output: string
  readonly seconds: number
}

export type CommandContext = {
  /** The working directory. */
  readonly folder: string
  /** The folder for temporary files. Processes that the command started are found by this path among their arguments. */
  readonly scratch: string
  readonly limitMs: number
  readonly signal: AbortSignal
}

const MS_PER_SECOND = 1_000
/** The embedded services notice that their parent has ended, and end in order within this time; then they are killed. */
const REMAINING_END_MAX_MS = 10_000
const POLL_MS = 50

const killGroup = ({ pid }: ChildProcess): void => {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has already ended.
  }
}

const killPid = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

const remainingPids = (scratch: string): Promise<readonly number[]> => pidsOf(scratch).catch(() => [])

/** The embedded services have process groups of their own, so the end of their parent's group does not end them. */
const endRemainingProcesses = async (scratch: string): Promise<void> => {
  const deadlineMs = performance.now() + REMAINING_END_MAX_MS
  while ((await remainingPids(scratch)).length > 0 && performance.now() < deadlineMs) await sleep(POLL_MS)
  for (const pid of await remainingPids(scratch)) killPid(pid)
}

const environment = (folder: string, scratch: string): NodeJS.ProcessEnv => ({
  ...process.env,
  TEST_BREADTH: 'full',
  TMPDIR: scratch,
  PATH: `${folder}/node_modules/.bin:${process.env['PATH'] ?? ''}`,
})

/** The command has a process group of its own, so that Ctrl-C reaches only this process, which then ends the group. */
const start = ([program = '', ...args]: readonly string[], { folder, scratch }: CommandContext): ChildProcess =>
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
export const runCommand = async (command: readonly string[], where: CommandContext): Promise<CommandResult> => {
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
  await endRemainingProcesses(where.scratch)
  await closed
  where.signal.throwIfAborted()
  return { code, isLate, output: output(), seconds }
}
