import { randomBytes } from 'node:crypto'
import type { CrashPoint, World } from './ports.ts'

// Node's own promise of a timeout makes an error with a stack whenever a wait is cut short, as most of ours are.
const sleep = (timeMs: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, timeMs)
    signal?.addEventListener('abort', end)
  })

/** The real world: the machine's clock and randomness. `crashAt` is for tests, which kill the process at that step. */
export const realWorld = (crashAt?: CrashPoint): World => ({
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  randomBytes: count => randomBytes(count),
  sleep,
  crashPoint: name => {
    if (name === crashAt) process.kill(process.pid, 'SIGKILL')
  },
})
