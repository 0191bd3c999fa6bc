import { randomBytes } from 'node:crypto'
import type { CrashPoint, World } from './ports.ts'

/** The real clock, randomness and crash points. */

// The promise of node:timers rejects with an error and a stack when a wait is aborted, as most of them are here.
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

/** `crashAt` is for tests: the process kills itself at that step. */
export const realWorld = (crashAt?: CrashPoint): World => ({
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  randomBytes: count => randomBytes(count),
  sleep,
  crashPoint: name => {
    if (name === crashAt) process.kill(process.pid, 'SIGKILL')
  },
})
