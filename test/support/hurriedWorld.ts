import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { World } from '../../src/ports.ts'

/** The real world in a hurry: a wait takes a fifth of its time, and the monotonic clock agrees with that. */

export const HURRIED_TIMES = 5

export const hurriedWorld = (): World => {
  const real = realWorld()
  return {
    ...real,
    monotonicMs: () => HURRIED_TIMES * real.monotonicMs(),
    sleep: (timeMs, signal) => real.sleep(timeMs / HURRIED_TIMES, signal),
  }
}
