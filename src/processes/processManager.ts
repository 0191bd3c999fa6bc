import { timeNow } from '../lib/time.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Metadata, Recorded } from '../../streams/envelope.ts'
import {
  RECOVERY_CONTENDED_RETRY_MS,
  RECOVERY_FAILED_RETRY_MS,
  RECOVERY_TICK_MS,
  RECOVERY_UNAVAILABLE_RETRY_MS,
} from './recoveryTimes.ts'
import { Contended, type Context, type Ledger } from '../commands/commandHandler.ts'
import { reasonOf } from '../feeds/deadLetters.ts'
import type { Feed } from '../feeds/feedLoop.ts'
import { createTimer, type Timer } from '../feeds/timer.ts'
import { type Database, Unavailable, type World } from '../ports.ts'
import { openConsumer, type Receiver } from './eventConsumer.ts'
import { createOpenTasks, type OpenTask, type OpenTasks } from './openTasks.ts'

/**
 * Reads the log, keeps the tasks that are begun and not ended, and finishes those whose grace is over. The checkpoint
 * stays before the oldest open task, so a restart finds all of them again.
 */

/** Work that one event begins and another event ends. */
export type Task = {
  readonly key: string
  /** How long the request that began the task has to finish it. After that the process manager finishes it. */
  readonly graceMs: number
  /** Ends the task. Idempotent: the request that began it, or an earlier run of this feed, may be ending it too. */
  readonly finish: () => Promise<void>
}

export type ProcessManager = {
  readonly name: string
  readonly categories: readonly string[]
  readonly begins: (recorded: Recorded<AnyEvent>) => Task | undefined
  /** The key of the task that this event ends. */
  readonly ends: (recorded: Recorded<AnyEvent>) => string | undefined
}

const AT_ONCE_MAX = 16

/** The context of a process manager's command, with the identity of the caller whose work it completes. */
export const contextOf = (manager: string, recorded: Recorded<AnyEvent>, world: World): Context => {
  const { schemaVersion: _, ...metadata }: Metadata = recorded.metadata
  return {
    ...metadata,
    authority: manager,
    causationId: recorded.eventId,
    commandId: `${manager}/${recorded.eventId}`,
    mayBeRepeated: true,
    quota: { use: 'completion' },
    at: timeNow(world),
  }
}

type OnFailure = (key: string, error: unknown) => void

export type ProcessManagerDependencies = {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'store' | 'world'>
  /** Called for a task that could not be finished. */
  readonly onFailure: OnFailure
}

export const feedOf = (manager: ProcessManager, { database, ledger, onFailure }: ProcessManagerDependencies): Feed => ({
  name: manager.name,
  categories: manager.categories,
  beginRun: async (epoch, signal) => {
    const { store, world } = ledger
    const timer = createTimer(world)
    const run = createRun(manager, world, timer, onFailure)
    const consumer = await openConsumer({ name: manager.name, database, store, world, epoch, timer }, run)
    return {
      after: consumer.after,
      processBatch: consumer.processBatch,
      background: async () => {
        while (!signal.aborted) {
          await consumer.serve()
          await run.finishDue(signal)
          await consumer.settle()
          run.tasks.setTimer()
          await timer.wait(signal, RECOVERY_TICK_MS)
        }
      },
    }
  },
})

type ManagerRun = Receiver & {
  readonly tasks: OpenTasks<Task>
  /** Resolves when every task that it started has settled. */
  readonly finishDue: (signal: AbortSignal) => Promise<void>
}

/** Resolves to whether the dependencies of the task answered. A task that cannot be finished must not hold up the others. */
const finisherOf = (tasks: OpenTasks<Task>, world: World, onFailure: OnFailure) => {
  let outageReportAtMs = 0
  /** An outage leaves many tasks without an answer; one of them names the cause. */
  const reportOutage = (key: string, error: Unavailable): void => {
    if (world.monotonicMs() < outageReportAtMs) return
    outageReportAtMs = world.monotonicMs() + RECOVERY_FAILED_RETRY_MS
    onFailure(key, error)
  }
  return async ({ key, work }: OpenTask<Task>): Promise<boolean> => {
    try {
      await work.finish()
      tasks.end(key)
    } catch (error) {
      if (error instanceof Unavailable && !(error instanceof Contended)) {
        reportOutage(key, error)
        tasks.postpone(key, RECOVERY_UNAVAILABLE_RETRY_MS)
        return false
      }
      // A task that a replayed event began goes back to the operator; any other is tried again.
      onFailure(key, error)
      const retryMs = error instanceof Contended ? RECOVERY_CONTENDED_RETRY_MS : RECOVERY_FAILED_RETRY_MS
      if (!tasks.failReplayed(key, reasonOf(error))) tasks.postpone(key, retryMs)
    }
    return true
  }
}

const createRun = (manager: ProcessManager, world: World, timer: Timer, onFailure: OnFailure): ManagerRun => {
  const tasks = createOpenTasks<Task>(world, timer)
  const finishOne = finisherOf(tasks, world, onFailure)
  return {
    tasks,
    receive: (recorded, origin) => {
      const task = manager.begins(recorded)
      if (task) tasks.begin(task.key, { work: task, graceMs: task.graceMs }, origin)
      const ended = manager.ends(recorded)
      if (ended !== undefined) tasks.end(ended)
    },
    finishDue: async signal => {
      const due = tasks.due().values()
      // After a task without an answer no other takes its turn, so that an outage is met by AT_ONCE_MAX attempts.
      const finishInTurn = async (): Promise<void> => {
        for (const task of due) if (signal.aborted || !(await finishOne(task))) return
      }
      await Promise.all(Array.from({ length: AT_ONCE_MAX }, finishInTurn))
    },
  }
}
