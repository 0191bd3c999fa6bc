import type { Feed } from '../../src/feeds/subscriptionLoop.ts'
import type { World } from '../../src/ports.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

const turns = async (count: number): Promise<void> => {
  for (let left = count; left > 0; left -= 1) await new Promise(resolve => setImmediate(resolve))
}
/** Enough turns of the event loop for a command to come to its end on a log in memory. */
const COMMAND_TURNS = 50

/** A world in which time passes when the test says so, and those who sleep wake then. */
export type HeldWorld = World & { readonly pass: (timeMs: number) => Promise<void> }

export const createHeldWorld = (): HeldWorld => {
  const virtual = createVirtualWorld()
  const sleepers = new Set<() => void>()
  return {
    ...virtual,
    sleep: (_, signal) =>
      new Promise(resolve => {
        const wake = (): void => {
          sleepers.delete(wake)
          resolve()
        }
        sleepers.add(wake)
        signal?.addEventListener('abort', wake, { once: true })
        if (signal?.aborted) wake()
      }),
    pass: async timeMs => {
      virtual.pass(timeMs)
      for (const wake of [...sleepers]) wake()
      await turns(COMMAND_TURNS)
    },
  }
}

/** A feed that a test moves by hand: what came into the log since the last time, in one batch. */
export type Driven = {
  readonly takeNews: () => Promise<void>
  /** Settles with the failure of the work beside the loop, or when it was stopped. */
  readonly beside: Promise<void>
  readonly stop: () => Promise<void>
}

export const drive = async (feed: Feed, log: MemoryLog, epoch = 1n): Promise<Driven> => {
  const stopping = new AbortController()
  const run = await feed.beginRun(epoch, stopping.signal)
  let taken = run.after === 'start' ? 0n : run.after
  const beside = run.background?.() ?? Promise.resolve()
  beside.catch(() => undefined)
  return {
    beside,
    takeNews: async () => {
      const wanted = log.events.filter(
        ({ position, stream }) => position > taken && feed.categories.some(name => stream.startsWith(`${name}-`)),
      )
      taken = log.head()
      await run.processBatch(wanted, taken)
    },
    stop: async () => {
      stopping.abort()
      await beside
    },
  }
}

/** For processes whose tasks must all succeed: a failure is the test's. */
export const noFailure = (key: string, error: unknown): never => {
  throw new Error(`The task ${key} failed.`, { cause: error })
}
