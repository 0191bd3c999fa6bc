import { Unavailable, type World } from '../ports.ts'
import { createTimer } from './timer.ts'

/**
 * A feed has work until it has processed the whole log, and again with the next event. One that has work and processes
 * no batch for STALLED_AFTER_MS is stalled, for any reason. One that waits for its lease has no work while another
 * process is known to have it.
 */

export type FeedState = {
  readonly name: string
  /** `waiting` without an error: for the lease; with one: tries again (health: `retrying`). `off`: by the settings. */
  readonly state: 'waiting' | 'catching_up' | 'live' | 'stopped' | 'stalled' | 'off'
  readonly position: bigint
  /** The reason why it makes no progress, for the operator. */
  readonly error?: string
  /** The dependency that does not answer, where that is the reason. */
  readonly dependency?: Unavailable['dependency']
}

export const STALLED_AFTER_MS = 30_000

export type Progress = {
  /** The feed has no lease, and waits for it. */
  readonly waiting: () => void
  /** The lease was not acquired: the attempt failed with `error`, or without an error another process has the lease. */
  readonly leaseAttempted: (error?: unknown) => void
  /** The feed has work from now on. A repeated call does not restart the time. */
  readonly hasWork: () => void
  /** A batch was processed. `live`: it had the last events of the log. */
  readonly processed: (position: bigint, live: boolean) => void
  /** The feed cannot continue now, and tries again. `stopped`: a dependency that does not answer is not the reason. */
  readonly failed: (error: unknown, stopped: boolean) => void
  /** Reports the state `stalled` when it begins, until the signal. */
  readonly reportWhenStalled: (signal: AbortSignal) => Promise<void>
}

type Failure = Pick<FeedState, 'error' | 'dependency'> & { readonly stopped: boolean }

/** The message of the cause is appended to that of Unavailable, which only names the dependency. */
const failureOf = (error: unknown, stopped: boolean): Failure => {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof Unavailable)) return { error: message, stopped }
  const cause = error.cause instanceof Error ? ` ${error.cause.message}` : ''
  return { error: `${message}${cause}`, dependency: error.dependency, stopped }
}

/** The time since when a feed has had work, with the timer that ends when it stalls. */
const createWorkTime = (world: World) => {
  const timer = createTimer(world)
  let sinceMs: number | undefined
  const isStalled = (): boolean => sinceMs !== undefined && world.monotonicMs() - sinceMs >= STALLED_AFTER_MS
  const restart = (): void => {
    sinceMs = world.monotonicMs()
    timer.setAt(sinceMs + STALLED_AFTER_MS)
  }
  return {
    isStalled,
    restart,
    begin: (): void => {
      if (sinceMs === undefined) restart()
    },
    end: (): void => {
      sinceMs = undefined
    },
    /** Resolves when the feed may have stalled. */
    untilStalled: async (signal: AbortSignal): Promise<void> => {
      if (sinceMs !== undefined && !isStalled()) timer.setAt(sinceMs + STALLED_AFTER_MS)
      await timer.wait(signal, 0)
    },
  }
}

/** Long because the states of a feed share the variables that tell them apart. */
export const createProgress = (name: string, world: World, report: (state: FeedState) => void): Progress => {
  const work = createWorkTime(world)
  let position = 0n
  let failure: Failure | undefined
  let isReportedStalled = false
  let isStandby = false

  const reportFailure = (): void => {
    isReportedStalled = work.isStalled()
    isStandby = false
    const {
      stopped,
      dependency,
      error = 'No error was reported; a dependency may not be responding.',
    } = failure ?? { stopped: false }
    const state = stopped ? 'stopped' : isReportedStalled ? 'stalled' : 'waiting'
    const since = isReportedStalled ? `No progress for ${STALLED_AFTER_MS / 1_000} s. ` : ''
    report({ name, state, position, error: `${since}${error}`, ...(dependency !== undefined && { dependency }) })
  }

  const reportStandby = (): void => {
    if (isStandby) return
    isStandby = true
    isReportedStalled = false
    failure = undefined
    position = 0n
    report({ name, state: 'waiting', position })
  }

  return {
    waiting: () => {
      work.begin()
      if (!isReportedStalled) reportStandby()
    },
    leaseAttempted: error => {
      if (error !== undefined) {
        failure = failureOf(error, false)
        return
      }
      work.restart()
      reportStandby()
    },
    hasWork: work.begin,
    processed: (upTo, live) => {
      position = upTo
      failure = undefined
      isReportedStalled = false
      isStandby = false
      if (live) work.end()
      else work.restart()
      report({ name, state: live ? 'live' : 'catching_up', position })
    },
    failed: (error, stopped) => {
      work.begin()
      failure = failureOf(error, stopped)
      reportFailure()
    },
    reportWhenStalled: async signal => {
      while (!signal.aborted) {
        await work.untilStalled(signal)
        if (!signal.aborted && work.isStalled() && !isReportedStalled) reportFailure()
      }
    },
  }
}
