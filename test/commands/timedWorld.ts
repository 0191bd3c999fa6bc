import type { World } from '../../src/ports.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

/** Turns of the event loop in which everything happens that takes no time. */
const TURNS = 20

export type TimedWorld = World & {
  /** Lets time pass, from one sleeper to the next, until the work is done. Resolves with how long it took. */
  readonly play: (work: Promise<unknown>) => Promise<number>
}

type Sleeper = { readonly dueAtMs: number; readonly wake: () => void }

/** A world in which the sleepers wake in the order of their times, and nothing else takes any time. */
export const createTimedWorld = (): TimedWorld => {
  const virtual = createVirtualWorld()
  const sleepers = new Set<Sleeper>()
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn += 1) await new Promise(resolve => setImmediate(resolve))
  }
  const wakeNext = (): void => {
    const [next] = [...sleepers].toSorted((a, b) => a.dueAtMs - b.dueAtMs)
    if (next === undefined) throw new Error('The work waits for something that takes no time.')
    virtual.pass(Math.max(0, next.dueAtMs - virtual.monotonicMs()))
    next.wake()
  }
  return {
    ...virtual,
    sleep: (timeMs, signal) =>
      new Promise(resolve => {
        const sleeper = {
          dueAtMs: virtual.monotonicMs() + timeMs,
          wake: () => {
            sleepers.delete(sleeper)
            resolve()
          },
        }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', sleeper.wake, { once: true })
        if (signal?.aborted) sleeper.wake()
      }),
    play: async work => {
      const beganAtMs = virtual.monotonicMs()
      let isDone = false
      const end = (): void => void (isDone = true)
      work.then(end, end)
      for (await settle(); !isDone; await settle()) wakeNext()
      return virtual.monotonicMs() - beganAtMs
    },
  }
}
