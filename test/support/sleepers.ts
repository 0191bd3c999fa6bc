import type { World } from '../../src/ports.ts'
import type { VirtualWorld } from './virtualWorld.ts'

/** Sleeps of a virtual world that end one at a time, in the order of their times. */

type Sleeper = { readonly dueAtMs: number; readonly wake: () => void }

export const createSleepers = (world: VirtualWorld) => {
  const sleepers = new Set<Sleeper>()
  const sleep: World['sleep'] = (timeMs, signal) =>
    new Promise(resolve => {
      const sleeper = {
        dueAtMs: world.monotonicMs() + timeMs,
        wake: () => {
          sleepers.delete(sleeper)
          resolve()
        },
      }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', sleeper.wake, { once: true })
      if (signal?.aborted) sleeper.wake()
    })
  return {
    sleep,
    /** Advances the clock to the end of the next sleep and ends it. False if none ends until then. */
    wakeNext: (untilMs = Infinity): boolean => {
      const [next] = [...sleepers].toSorted((a, b) => a.dueAtMs - b.dueAtMs)
      if (next === undefined || next.dueAtMs > untilMs) return false
      world.pass(Math.max(0, next.dueAtMs - world.monotonicMs()))
      next.wake()
      return true
    },
  }
}
