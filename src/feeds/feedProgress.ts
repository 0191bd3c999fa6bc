import { Unavailable, type World } from '../ports.ts'

/**
 * The progress of a feed in this process. A feed has work until it has processed all events of the log, and again with the
 * next event. A feed that has work and processes no batch for STALLED_AFTER_MS reports that it is stalled, for any reason: a
 * dependency that does not answer, a subscription that is refused again and again, a batch or a connection that hangs. A feed
 * that waits for its lease has no work as long as another process is known to have it.
 */

export type FeedState = {
  readonly name: string
  /**
   * `waiting` without an error: the feed waits for its lease. `waiting` with an error: the feed tries again; the health
   * endpoint shows this as `retrying` (src/compose/health.ts).
   */
  readonly state: 'waiting' | 'catching_up' | 'live' | 'stopped' | 'stalled'
  readonly position: bigint
  /** The reason why it makes no progress, for the operator. */
  readonly error?: string
  /** The dependency that does not answer, where that is the reason. */
  readonly dependency?: Unavailable['dependency']
}

export const STALLED_AFTER_MS = 30_000
const CHECK_EVERY_MS = 1_000

export type Progress = {
  /** The feed has no lease, and waits for it. */
  readonly waiting: () => void
  /** The lease was not acquired: the attempt failed with `error`, or without an error another process has the lease. */
  readonly leaseAttempted: (error?: unknown) => void
  /** The feed has work from now on. A repeated call does not restart the time. */
  readonly hasWork: () => void
  /** A batch was processed. `live`: it had the last events of the log. */
  readonly processed: (position: bigint, live: boolean) => void
  /** The feed cannot go on now, and tries again. `stopped`: a dependency that does not answer is not the reason. */
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

/** Long because the states of a feed share the variables that tell them apart. */
export const createProgress = (name: string, world: World, report: (state: FeedState) => void): Progress => {
  let position = 0n
  let workSinceMs: number | undefined
  let failure: Failure | undefined
  let isReportedStalled = false
  let isStandby = false

  const isStalled = (): boolean => workSinceMs !== undefined && world.monotonicMs() - workSinceMs >= STALLED_AFTER_MS

  const reportFailure = (): void => {
    isReportedStalled = isStalled()
    isStandby = false
    const { stopped, dependency, error = 'Nothing has failed; something hangs.' } = failure ?? { stopped: false }
    const state = stopped ? 'stopped' : isReportedStalled ? 'stalled' : 'waiting'
    const since = isReportedStalled ? `It has not got on for ${STALLED_AFTER_MS / 1_000} s. ` : ''
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
      workSinceMs ??= world.monotonicMs()
      if (!isReportedStalled) reportStandby()
    },
    leaseAttempted: error => {
      if (error !== undefined) {
        failure = failureOf(error, false)
        return
      }
      workSinceMs = world.monotonicMs()
      reportStandby()
    },
    hasWork: () => {
      workSinceMs ??= world.monotonicMs()
    },
    processed: (upTo, live) => {
      position = upTo
      failure = undefined
      isReportedStalled = false
      isStandby = false
      workSinceMs = live ? undefined : world.monotonicMs()
      report({ name, state: live ? 'live' : 'catching_up', position })
    },
    failed: (error, stopped) => {
      workSinceMs ??= world.monotonicMs()
      failure = failureOf(error, stopped)
      reportFailure()
    },
    reportWhenStalled: async signal => {
      while (!signal.aborted) {
        await world.sleep(CHECK_EVERY_MS, signal)
        if (!signal.aborted && isStalled() && !isReportedStalled) reportFailure()
      }
    },
  }
}
