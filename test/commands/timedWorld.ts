import type { World } from '../../src/ports.ts'
import { createSleepers } from '../support/sleepers.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

/** Enough iterations of the event loop for all work that does not sleep. */
const LOOPS = 20

export type TimedWorld = World & {
  /**
   * Advances the clock from one sleep to the next until the work is done. Resolves with the virtual milliseconds that
   * passed.
   */
  readonly run: (work: Promise<unknown>) => Promise<number>
}

/** A world in which sleeps end in the order of their times, and only sleeps take time. */
export const createTimedWorld = (): TimedWorld => {
  const virtual = createVirtualWorld()
  const sleepers = createSleepers(virtual)
  const settle = async (): Promise<void> => {
    for (let loop = 0; loop < LOOPS; loop += 1) await new Promise(resolve => setImmediate(resolve))
  }
  const wakeNext = (): void => {
    if (!sleepers.wakeNext()) throw new Error('The work waits for something other than a sleep.')
  }
  return {
    ...virtual,
    sleep: sleepers.sleep,
    run: async work => {
      const beganAtMs = virtual.monotonicMs()
      let isDone = false
      const end = (): void => void (isDone = true)
      work.then(end, end)
      for (await settle(); !isDone; await settle()) wakeNext()
      return virtual.monotonicMs() - beganAtMs
    },
  }
}
