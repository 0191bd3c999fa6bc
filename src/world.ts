import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CrashPoint, World } from './ports.ts'

/** The real world: the machine's clock and randomness. `crashAt` is for tests, which kill the process at that step. */
export const realWorld = (crashAt?: CrashPoint): World => ({
  now: () => Date.now(),
  randomBytes: count => randomBytes(count),
  sleep: (timeMs, signal) => sleep(timeMs, undefined, signal ? { signal } : {}).catch(() => undefined),
  crashPoint: name => {
    if (name === crashAt) process.kill(process.pid, 'SIGKILL')
  },
})
