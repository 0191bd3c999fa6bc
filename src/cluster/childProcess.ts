import type { Operations } from './channel.ts'
import { type ForkedProcess, forkProcess } from './forkedProcess.ts'
import type { ChildSettings, StartFailure } from './protocol.ts'
import { backoffMs, sleep } from '../lib/time.ts'

/**
 * Supervision of a child. A process that ends is started again, after a pause that grows with the number of its ends
 * within a minute; one that hangs is killed (liveness.ts). A child that ends too often, and not because a dependency does not answer, ends the service.
 */

const PAUSE_MIN_MS = 100
const PAUSE_MAX_MS = 2_000
const ENDS_WINDOW_MS = 60_000
const ENDS_MAX = 10

export type ChildEvents = {
  /** The operations of a new process, and the function to be called when it has ended. */
  readonly open: (child: ChildProcess) => { readonly operations: Operations; readonly onEnd: () => void }
  /** A process serves connections from now on, or again. */
  readonly onServing: () => void
  /** A process does not answer. */
  readonly onSilent: (child: ChildProcess) => void
  /** A process has ended, and is started again after the pause. */
  readonly onEnded: (child: ChildProcess, how: string, pauseMs: number) => void
  /** The child cannot be kept running. */
  readonly onGivenUp: (reason: Error) => void
  readonly notAnswering: () => readonly string[]
}

export type ChildProcess = {
  readonly name: string
  readonly isApi: boolean
  /** The present process. */
  readonly present: () => ForkedProcess
  /** Resolves when the first process is ready. Rejects with ChildNotStarted if it ends before. */
  readonly ready: Promise<void>
  readonly isReady: () => void
  readonly notStarted: (failure: StartFailure) => void
  /** Ends the process gracefully, by force after the grace. Idempotent. */
  readonly stop: (graceMs: number) => Promise<void>
}

/** Its message is the reason that the child gave, a sentence or a stack. */
export class ChildNotStarted extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'ChildNotStarted'
  }
}

/** Counts the ends within the window, the present one included. */
const createEndCounter = (): (() => number) => {
  let ends: readonly number[] = []
  return () => {
    const nowMs = performance.now()
    ends = [...ends.filter(atMs => nowMs - atMs < ENDS_WINDOW_MS), nowMs]
    return ends.length
  }
}

type ChildOptions = { readonly name: string; readonly isApi: boolean; readonly settings: Promise<ChildSettings> }

/** Starts a child. Long because its functions share the present process. */
export const superviseChild = ({ name, isApi, settings }: ChildOptions, events: ChildEvents): ChildProcess => {
  const stopping = new AbortController()
  const firstReady = Promise.withResolvers<void>()
  firstReady.promise.catch(() => undefined)
  const countEnd = createEndCounter()
  let present: ForkedProcess
  let failure: StartFailure | undefined
  let hasBeenReady = false

  const runOnce = async (): Promise<string> => {
    const { operations, onEnd } = events.open(child)
    failure = undefined
    const { onServing, notAnswering } = events
    const onSilent = (): void => events.onSilent(child)
    present = forkProcess({ settings, operations, onServing, onSilent, notAnswering })
    const how = await present.exited
    onEnd()
    return how
  }

  const supervise = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const how = await runOnce()
      const { reason, isUnavailable = false } = failure ?? {}
      if (!hasBeenReady) firstReady.reject(new ChildNotStarted(reason ?? `The process ${name} ended (${how}).`))
      if (stopping.signal.aborted || !hasBeenReady) return
      const ends = countEnd()
      if (ends >= ENDS_MAX && !isUnavailable)
        return events.onGivenUp(new Error(`The process ${name} ended ${ends} times within a minute (${how}).`))
      const pauseMs = backoffMs(ends - 1, PAUSE_MIN_MS, PAUSE_MAX_MS)
      events.onEnded(child, reason ?? how, pauseMs)
      await sleep(pauseMs, stopping.signal)
    }
  }

  const child: ChildProcess = {
    name,
    isApi,
    present: () => present,
    ready: firstReady.promise,
    isReady: () => {
      hasBeenReady = true
      firstReady.resolve()
    },
    notStarted: reported => {
      failure = reported
    },
    stop: async graceMs => {
      stopping.abort()
      present.giveNoMore()
      present.call('stop').catch(() => undefined)
      const late = setTimeout(() => present.kill(), graceMs)
      await supervised
      clearTimeout(late)
    },
  }
  const supervised = supervise()
  return child
}
