import { randomBytes } from 'node:crypto'
import type { CrashPoint } from './crashPoints.ts'
import type { World } from '../ports.ts'
import { sleep } from './time.ts'

/** `crashAt` is for tests: the process kills itself at that step. */
export const realWorld = (crashAt?: CrashPoint): World => ({
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  randomBytes,
  sleep,
  crashPoint: name => {
    if (name === crashAt) process.kill(process.pid, 'SIGKILL')
  },
})
