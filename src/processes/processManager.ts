import type { AnyEvent } from '../../streams/decider.ts'
import type { Metadata, Recorded } from '../../streams/envelope.ts'
import { RECOVERY_TICK_MS } from '../commands/budgets.ts'
import { Contended, type Context, type Ledger } from '../commands/handle.ts'
import { reasonOf } from '../feeds/deadLetters.ts'
import type { Feed } from '../feeds/subscriptionLoop.ts'
import { type Database, Unavailable, type World } from '../ports.ts'
import { openIntake, type Receiver } from './eventIntake.ts'
import { createOpenWork } from './openWork.ts'

/** Something that an event has begun and another event will end. */
export type Task = {
  readonly key: string
  /** How long whoever began it has to end it before the process steps in. */
  readonly graceMs: number
  /** Ends it. Idempotent: the one who began it may be at it too, and so may an earlier run of this process. */
  readonly finish: () => Promise<void>
}

export type ProcessManager = {
  readonly name: string
  readonly categories: readonly string[]
  readonly begins: (recorded: Recorded<AnyEvent>) => Task | undefined
  /** The key of the task that this event ends. */
  readonly ends: (recorded: Recorded<AnyEvent>) => string | undefined
}

type Open = { readonly task: Task; dueAtMs: number }

const AT_ONCE_MAX = 16
const FAILED_RETRY_MS = 30_000
/** A race that was lost says nothing against the task. */
const CONTENDED_RETRY_MS = 1_000

/** A command sent by a process, in the name of whoever sent the command that it completes. */
export const contextOf = (process: string, recorded: Recorded<AnyEvent>, world: World): Context => {
  const { schemaVersion: _, ...metadata }: Metadata = recorded.metadata
  return {
    ...metadata,
    authority: process,
    causationId: recorded.eventId,
    commandId: `${process}/${recorded.eventId}`,
    at: new Date(world.now()).toISOString(),
  }
}

type OnFailure = (key: string, error: unknown) => void

export type ProcessManagerDependencies = {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'store' | 'world'>
  /** Told of a task that could not be finished; it is tried again. */
  readonly onFailure: OnFailure
}

/**
 * Reads the log, keeps the tasks that are begun and not ended, and ends those whose grace is over. All its memory is in
 * the log: the checkpoint stays behind the oldest open task, so that a restart finds every one of them again.
 */
export const feedOf = (process: ProcessManager, { database, ledger, onFailure }: ProcessManagerDependencies): Feed => ({
  name: process.name,
  categories: process.categories,
  beginRun: async (epoch, signal) => {
    const { store, world } = ledger
    const tasks = createTasks(process, world, onFailure)
    const {
      after,
      processBatch: take,
      serve,
    } = await openIntake({ name: process.name, database, store, world, epoch }, tasks)
    return {
      after,
      processBatch: take,
      background: async () => {
        while (!signal.aborted) {
          await world.sleep(RECOVERY_TICK_MS, signal)
          await serve()
          await tasks.finishDue(signal)
        }
      },
    }
  },
})

type Tasks = Receiver & {
  /** Throws Unavailable, and only when none of those that were due is under way any more. */
  readonly finishDue: (signal: AbortSignal) => Promise<void>
}

/** The open tasks of one run. */
const createTasks = (process: ProcessManager, world: World, onFailure: OnFailure): Tasks => {
  const open = createOpenWork<Open>()
  const finishOne = async ([key, item]: readonly [string, Open]): Promise<void> => {
    try {
      await item.task.finish()
      open.end(key)
    } catch (error) {
      if (error instanceof Unavailable && !(error instanceof Contended)) throw error
      // A task that cannot be finished must not keep the others from it: told, and tried again later.
      onFailure(key, error)
      const retryMs = error instanceof Contended ? CONTENDED_RETRY_MS : FAILED_RETRY_MS
      if (!open.giveUp(key, reasonOf(error))) item.dueAtMs = world.monotonicMs() + retryMs
    }
  }
  return {
    open,
    take: (recorded, origin) => {
      const task = process.begins(recorded)
      if (task) open.begin(task.key, { task, dueAtMs: world.monotonicMs() + task.graceMs }, origin)
      const ended = process.ends(recorded)
      if (ended !== undefined) open.end(ended)
    },
    finishDue: async signal => {
      const due = open.entries().filter(([, { dueAtMs }]) => dueAtMs <= world.monotonicMs())
      for (let next = 0; next < due.length && !signal.aborted; next += AT_ONCE_MAX)
        await allOf(due.slice(next, next + AT_ONCE_MAX).map(finishOne))
    },
  }
}

/** As Promise.all, but nothing is under way any more when it rejects. */
const allOf = async (work: readonly Promise<void>[]): Promise<void> => {
  const failed = (await Promise.allSettled(work)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
