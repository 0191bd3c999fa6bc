import { createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import type { Feed } from '../../src/feeds/feedLoop.ts'
import type { Database, World } from '../../src/ports.ts'
import type { ProcessManager } from '../../src/processes/processManager.ts'
import { useTestPostgres } from '../feeds/fixtures.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

/** The harness of process tests: an empty log in memory and an empty database for each test, time and runs by hand. */

/** Enough iterations of the event loop for a command to complete on a log in memory. */
const COMMAND_LOOPS = 50

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
      for (let loop = 0; loop < COMMAND_LOOPS; loop += 1) await new Promise(resolve => setImmediate(resolve))
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
  let processed = run.after === 'start' ? 0n : run.after
  const background = run.background?.() ?? Promise.resolve()
  background.catch(() => undefined)
  return {
    background,
    processNew: async () => {
      const target = log.events.filter(
        ({ position, stream }) =>
          position > processed && (feed.categories?.some(name => stream.startsWith(`${name}-`)) ?? true),
      )
      processed = log.head()
      await run.processBatch(target, processed)
    },
    stop: async () => {
      stopping.abort()
      await background
    },
  }
}

/** A process manager that begins a task for each order that is created, and ends it when the order is deleted. */
export const watchOrders = (graceMs: number, finish: (key: string) => Promise<void>): ProcessManager => ({
  name: 'watching',
  categories: ['order'],
  begins: ({ id: key, event }) =>
    event.type === 'OrderCreated' ? { key, graceMs, finish: () => finish(key) } : undefined,
  ends: ({ id: key, event }) => (event.type === 'OrderDeleted' ? key : undefined),
})

/** Fails the test at the failure of a task. */
export const noFailure = (key: string, error: unknown): never => {
  throw new Error(`The task ${key} failed.`, { cause: error })
}

/** New for each test of the describe block that calls `useProcessHarness`. */
export type ProcessHarness = {
  readonly database: Database
  readonly log: MemoryLog
  readonly world: HeldWorld
  readonly ledger: Ledger
  /** A ledger on the same log with caches of its own, as in another process of the service. */
  readonly openLedger: () => Ledger
  /** Begins a run, which is stopped after the test. */
  readonly start: (feed: Feed, epoch?: bigint) => Promise<DrivenRun>
  readonly checkpoint: (name: string) => Promise<bigint>
}

type Fresh = Pick<ProcessHarness, 'database' | 'log' | 'world' | 'ledger'>

export const useProcessHarness = (): ProcessHarness => {
  const postgres = useTestPostgres()
  let fresh: Fresh | undefined
  const runs: DrivenRun[] = []
  const current = (): Fresh => {
    if (fresh === undefined) throw new Error('The harness is created before each test.')
    return fresh
  }
  const openLedger = (): Ledger => createLedger(current().log.open(), current().world)
  beforeEach(async () => {
    const [log, world] = [createMemoryLog(), createHeldWorld()]
    fresh = { database: await postgres.ledgerDatabase(), log, world, ledger: createLedger(log.open(), world) }
  })
  afterEach(async () => {
    for (const run of runs.splice(0)) await run.stop().catch(() => undefined)
  })
  return {
    get database() {
      return current().database
    },
    get log() {
      return current().log
    },
    get world() {
      return current().world
    },
    get ledger() {
      return current().ledger
    },
    openLedger,
    start: async (feed, epoch = 1n) => {
      const run = await drive(feed, current().log, epoch)
      runs.push(run)
      return run
    },
    checkpoint: name => positionOf(current().database.sql, name),
  }
}
