import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { systemCode } from '../lib/startupError.ts'

export const hasEnded = ({ exitCode, signalCode }: Pick<ChildProcess, 'exitCode' | 'signalCode'>): boolean =>
  exitCode !== null || signalCode !== null

/** Sends the signal, and SIGKILL after the grace. Resolves when the process has ended. */
export const endProcess = async (child: ChildProcess, signal: NodeJS.Signals, graceMs: number): Promise<void> => {
  if (hasEnded(child)) return
  const ended = once(child, 'exit')
  const late = setTimeout(() => child.kill('SIGKILL'), graceMs)
  child.kill(signal)
  await ended
  clearTimeout(late)
}

/** Without effect on a process that has ended. A negative pid is that of a process group. */
export const signalProcess = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (systemCode(error) !== 'ESRCH') throw error
  }
}
