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

export type OpenTasks<T> = {
  /** The task is due after the grace period. Sets the timer. Does nothing for a key that is open already. */
  readonly begin: (key: string, task: { readonly work: T; readonly graceMs: number }, origin: Origin) => void
  readonly end: (key: string) => void
  /** The tasks that are due, in the order in which they began. */
  readonly due: () => readonly OpenTask<T>[]
  /** The task is due again after this time, unless it has ended. Sets the timer. */
  readonly postpone: (key: string, delayMs: number) => void
  readonly setTimer: () => void
  /** Ends a task that a dead letter began: the event waits for an operator again. False for any other task. */
  readonly failReplayed: (key: string, reason: string) => boolean
  /** The position after which a later run finds all open tasks again; undefined when none is open. */
  readonly resumeAfter: () => ResumePosition | undefined
  /** Whether the task that this dead letter began is open. */
  readonly isOpenFor: (event: DeadLetter) => boolean
  /** The dead letters that have finished since the last call. */
  readonly takeFinished: () => Finished
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
export const createOpenTasks = <T>(world: Pick<World, 'monotonicMs'>, timer: Pick<Timer, 'setAt'>): OpenTasks<T> => {
  const open = new Map<string, OpenItem<T>>()
  const finished = createFinished()

  const remove = (key: string): Origin | undefined => {
    const item = open.get(key)
    open.delete(key)
    item?.ending.abort('ended')
    return item?.origin
  }

  return {
    begin: (key, { work, graceMs }, origin) => {
      if (open.has(key)) return
      const ending = new AbortController()
      const dueAtMs = world.monotonicMs() + graceMs
      open.set(key, { key, work, ended: ending.signal, ending, origin, dueAtMs })
      timer.setAt(dueAtMs)
    },
    end: key => finished.done(remove(key)),
    due: () => [...open.values()].filter(({ dueAtMs }) => dueAtMs <= world.monotonicMs()),
    postpone: (key, delayMs) => {
      const item = open.get(key)
      if (item === undefined) return
      item.dueAtMs = world.monotonicMs() + delayMs
      timer.setAt(item.dueAtMs)
    },
    setTimer: () => {
      for (const { dueAtMs } of open.values()) timer.setAt(dueAtMs)
    },
    failReplayed: (key, reason) => {
      const origin = open.get(key)?.origin
      if (origin === undefined || !('parked' in origin)) return false
      remove(key)
      finished.failed(origin.parked, reason)
      return true
    },
    resumeAfter: () => {
      for (const { origin } of open.values()) if ('after' in origin) return origin.after
      return undefined
    },
    isOpenFor: ({ position }) =>
      open.values().some(({ origin }) => 'parked' in origin && origin.parked.position === position),
    takeFinished: finished.take,
  }
}
