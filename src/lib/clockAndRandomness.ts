import { randomBytes } from 'node:crypto'
import type { CrashPoint } from './crashPoints.ts'
import type { World } from '../ports.ts'

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

const POOL_BYTES = 4_096
const POOLED_MAX_BYTES = 64

/**
 * Random bytes out of a pool, because a call of the generator takes longer than the few bytes of an id. Bytes leave the
 * pool with their use, so it never holds a secret that is in use.
 */
const pooledRandomBytes = (): World['randomBytes'] => {
  let pool = Buffer.alloc(0)
  let used = 0
  return count => {
    if (count > POOLED_MAX_BYTES) return randomBytes(count)
    if (used + count > pool.length) {
      pool = randomBytes(POOL_BYTES)
      used = 0
    }
    const bytes = Buffer.from(pool.subarray(used, used + count))
    pool.fill(0, used, used + count)
    used += count
    return bytes
  }
}

/** `crashAt` is for tests: the process kills itself at that step. */
export const realWorld = (crashAt?: CrashPoint): World => ({
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  randomBytes: pooledRandomBytes(),
  sleep,
  crashPoint: name => {
    if (name === crashAt) process.kill(process.pid, 'SIGKILL')
  },
})
