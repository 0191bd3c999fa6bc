import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** The end of the processes that scripts start. */

const STOP_MAX_MS = 20_000

export const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

/** Resolves when the process has ended; it is killed when that takes too long. */
export const stopProcess = async (child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
  if (hasEnded(child)) return
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS)
  child.kill(signal)
  await once(child, 'exit')
  clearTimeout(late)
}
