import type { AnyEvent } from '../../streams/decider.ts'
import type { Metadata, Recorded } from '../../streams/envelope.ts'
import type { Context } from '../commands/handle.ts'
import { moveCheckpoint, takeCheckpoint } from '../feeds/checkpoints.ts'
import { decode } from '../feeds/decode.ts'
import type { Feed } from '../feeds/run.ts'
import { type Database, Unavailable, type World } from '../ports.ts'

/** Something that an event has begun and another event will end. */
export type Task = {
  readonly key: string
  /** How long whoever began it has to end it before the process steps in. */
  readonly graceMs: number
  /** Ends it. Idempotent: the one who began it may be at it too, and so may an earlier run of this process. */
  readonly finish: () => Promise<void>
}

export type Process = {
  readonly name: string
  readonly categories: readonly string[]
  readonly begins: (recorded: Recorded<AnyEvent>) => Task | undefined
  /** The key of the task that this event ends. */
  readonly ends: (recorded: Recorded<AnyEvent>) => string | undefined
}

type Open = { readonly task: Task; readonly position: bigint; readonly dueAtMs: number }

const TICK_MS = 250
const AT_ONCE_MAX = 16
const FAILED_RETRY_MS = 30_000

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

/**
 * Reads the log, keeps the tasks that are begun and not ended, and ends those whose grace is over. All its memory is in
 * the log: the checkpoint stays behind the oldest open task, so that a restart finds every one of them again.
 */
export const feedOf = (
  process: Process,
  database: Database,
  world: World,
  onFailure: (key: string, error: unknown) => void,
): Feed => ({
  name: process.name,
  categories: process.categories,
  begin: async (epoch, signal) => {
    const tasks = createTasks(process, world, onFailure)
    return {
      after: await takeCheckpoint(database.sql, process.name, epoch),
      take: async (events, position) => {
        for (const event of events) tasks.take(decode(event).recorded)
        const oldest = tasks.oldest()
        await moveCheckpoint(database.sql, [process.name], oldest ? oldest.position - 1n : position, epoch)
      },
      alongside: async () => {
        while (!signal.aborted) {
          await world.sleep(TICK_MS, signal)
          await tasks.finishDue(signal)
        }
      },
    }
  },
})

/** The open tasks of one run. */
const createTasks = (process: Process, world: World, onFailure: (key: string, error: unknown) => void) => {
  const open = new Map<string, Open>()
  const finishOne = async ([key, { task, position }]: [string, Open]): Promise<void> => {
    try {
      await task.finish()
      open.delete(key)
    } catch (error) {
      if (error instanceof Unavailable) throw error
      // A task that cannot be finished must not keep the others from it: told, and tried again later.
      onFailure(key, error)
      open.set(key, { task, position, dueAtMs: world.now() + FAILED_RETRY_MS })
    }
  }
  return {
    take: (recorded: Recorded<AnyEvent>): void => {
      const task = process.begins(recorded)
      if (task) open.set(task.key, { task, position: recorded.position, dueAtMs: world.now() + task.graceMs })
      const ended = process.ends(recorded)
      if (ended !== undefined) open.delete(ended)
    },
    oldest: (): Open | undefined => open.values().next().value,
    /** Throws Unavailable, and only when none of those that were due is under way any more. */
    finishDue: async (signal: AbortSignal): Promise<void> => {
      const due = [...open].filter(([, { dueAtMs }]) => dueAtMs <= world.now())
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
