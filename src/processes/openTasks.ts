import type { ResumePosition } from '../feeds/checkpoints.ts'
import type { DeadLetter } from '../feeds/deadLetters.ts'
import type { Timer } from '../feeds/timer.ts'
import type { World } from '../ports.ts'

/** The open tasks of one run of a process manager or of the exports: begun by an event, and not ended yet. */

/** Where a later run finds the event: in the log after this position, or among the dead letters. */
export type Origin = { readonly after: ResumePosition } | { readonly parked: DeadLetter }

export type Failed = { readonly event: DeadLetter; readonly reason: string }

/** Replayed events whose tasks have ended, and those whose tasks failed, so they wait for an operator again. */
export type Finished = { readonly done: readonly DeadLetter[]; readonly failed: readonly Failed[] }

export type OpenTask<T> = {
  readonly key: string
  readonly work: T
  /** Aborts when the task has ended. */
  readonly ended: AbortSignal
}

type OpenItem<T> = OpenTask<T> & { readonly origin: Origin; readonly ending: AbortController; dueAtMs: number }

const createFinished = () => {
  let done: DeadLetter[] = []
  let failed: Failed[] = []
  return {
    done: (origin: Origin | undefined): void => {
      if (origin && 'parked' in origin) done.push(origin.parked)
    },
    failed: (event: DeadLetter, reason: string): void => void failed.push({ event, reason }),
    take: (): Finished => {
      const finished = { done, failed }
      done = []
      failed = []
      return finished
    },
  }
}

/** The timer is that of the loop which finishes tasks. Long because its functions share the open tasks. */
export const createOpenTasks = <T>(world: Pick<World, 'monotonicMs'>, timer: Pick<Timer, 'setAt'>) => {
  const open = new Map<string, OpenItem<T>>()
  const finished = createFinished()

  const remove = (key: string): Origin | undefined => {
    const item = open.get(key)
    open.delete(key)
    item?.ending.abort('ended')
    return item?.origin
  }

  return {
    /** The task is due after the grace period. Sets the timer. Does nothing for a key that is open already. */
    begin: (key: string, { work, graceMs }: { readonly work: T; readonly graceMs: number }, origin: Origin): void => {
      if (open.has(key)) return
      const ending = new AbortController()
      const dueAtMs = world.monotonicMs() + graceMs
      open.set(key, { key, work, ended: ending.signal, ending, origin, dueAtMs })
      timer.setAt(dueAtMs)
    },
    end: (key: string): void => finished.done(remove(key)),
    /** The tasks that are due, in the order in which they began. */
    due: (): readonly OpenTask<T>[] => [...open.values()].filter(({ dueAtMs }) => dueAtMs <= world.monotonicMs()),
    /** The task is due again after this time, unless it has ended. Sets the timer. */
    postpone: (key: string, delayMs: number): void => {
      const item = open.get(key)
      if (item === undefined) return
      item.dueAtMs = world.monotonicMs() + delayMs
      timer.setAt(item.dueAtMs)
    },
    setTimer: (): void => {
      for (const { dueAtMs } of open.values()) timer.setAt(dueAtMs)
    },
    /** Ends a task that a dead letter began: the event waits for an operator again. False for any other task. */
    failReplayed: (key: string, reason: string): boolean => {
      const origin = open.get(key)?.origin
      if (origin === undefined || !('parked' in origin)) return false
      remove(key)
      finished.failed(origin.parked, reason)
      return true
    },
    /** The position after which a later run finds all open tasks again; undefined when none is open. */
    resumeAfter: (): ResumePosition | undefined => {
      for (const { origin } of open.values()) if ('after' in origin) return origin.after
      return undefined
    },
    /** Whether the task that this dead letter began is open. */
    isOpenFor: ({ position }: DeadLetter): boolean =>
      open.values().some(({ origin }) => 'parked' in origin && origin.parked.position === position),
    /** The dead letters that have finished since the last call. */
    takeFinished: finished.take,
  }
}
export type OpenTasks<T> = ReturnType<typeof createOpenTasks<T>>
