import type { Feed } from '../../src/feeds/subscriptionLoop.ts'
import type { World } from '../../src/ports.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

const turns = async (count: number): Promise<void> => {
  for (let left = count; left > 0; left -= 1) await new Promise(resolve => setImmediate(resolve))
}
/** Enough turns of the event loop for a command to complete on a log in memory. */
const COMMAND_TURNS = 50

/** A world whose time passes when the test calls `pass`, which ends all sleeps. */
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

/** A run that the test drives. */
export type DrivenRun = {
  /** Processes the new events of the log in one batch. */
  readonly processNew: () => Promise<void>
  /** Rejects with the failure of the background work; resolves when it was stopped. */
  readonly background: Promise<void>
  readonly stop: () => Promise<void>
}

export const drive = async (feed: Feed, log: MemoryLog, epoch = 1n): Promise<DrivenRun> => {
  const stopping = new AbortController()
  const run = await feed.beginRun(epoch, stopping.signal)
  let taken = run.after === 'start' ? 0n : run.after
  const background = run.background?.() ?? Promise.resolve()
  background.catch(() => undefined)
  return {
    background,
    processNew: async () => {
      const wanted = log.events.filter(
        ({ position, stream }) => position > taken && feed.categories.some(name => stream.startsWith(`${name}-`)),
      )
      taken = log.head()
      await run.processBatch(wanted, taken)
    },
    stop: async () => {
      stopping.abort()
      await background
    },
  }
}

/** For processes whose tasks must all succeed: a failure fails the test. */
export const noFailure = (key: string, error: unknown): never => {
  throw new Error(`The task ${key} failed.`, { cause: error })
}
