import { setTimeout as sleep } from 'node:timers/promises'
import { StartupError } from '../lib/startupError.ts'
import { backoffMs } from '../lib/time.ts'
import type { Operations } from './channel.ts'
import { type ChildProcess, type ProcessEnd, type ProcessOptions, startProcess } from './childProcess.ts'
import type { ChildOperations } from './protocol.ts'

/**
 * A process that ends is started again after a growing pause; one that hangs is killed (liveness.ts). Not if the first
 * one ends before it is ready, or if it ends too often, unless a dependency does not answer.
 */

const PAUSE_MIN_MS = 100
const PAUSE_MAX_MS = 2_000
const ENDS_WINDOW_MS = 60_000
const ENDS_MAX = 10
const STOP_MAX_MS = 20_000

export type Supervision<Remote extends ChildOperations> = Omit<ProcessOptions<Remote>, 'args'> & {
  /** The name in messages, such as `postgres`. */
  readonly name: string
  /** The port for the first process; 0, a free one, by default. */
  readonly port?: number
  /** `port` is that of the address once there is one, because clients have it. */
  readonly args?: (port: string) => readonly string[]
  /** Called for each process. Makes the operations that it may call. */
  readonly open?: (child: ChildProcess<Remote>) => Operations
  /** A process has ended, and is started again after the pause. */
  readonly onEnded?: (how: string, pauseMs: number) => void
  /** The child cannot be kept running. */
  readonly onGivenUp?: ((reason: Error) => void) | undefined
  /** The time in which a process must be ready; unlimited by default. */
  readonly startMaxMs?: number
  readonly endsMax?: number
}

export type Child<Remote extends ChildOperations = ChildOperations> = {
  readonly name: string
  readonly current: () => ChildProcess<Remote>
  /** Resolves to the address of the first process when it is ready. Rejects with a StartupError if it ends before. */
  readonly ready: Promise<string>
  /** Ends the process gracefully, by force after the grace. Idempotent. */
  readonly stop: (graceMs?: number) => Promise<void>
}

/** Counts the ends within the window, the current one included. */
const createEndCounter = (): (() => number) => {
  let ends: readonly number[] = []
  return () => {
    const nowMs = performance.now()
    ends = [...ends.filter(atMs => nowMs - atMs < ENDS_WINDOW_MS), nowMs]
    return ends.length
  }
}

/** Long because its functions share the current process. */
export const superviseChild = <Remote extends ChildOperations>(options: Supervision<Remote>): Child<Remote> => {
  const { name, port = 0, args, open, onEnded, onGivenUp, startMaxMs, endsMax = ENDS_MAX } = options
  const stopping = new AbortController()
  const first = Promise.withResolvers<string>()
  // Nothing waits for it where the start fails for another reason.
  first.promise.catch(() => undefined)
  const countEnd = createEndCounter()
  let address: string | undefined

  const start = (): ChildProcess<Remote> =>
    startProcess({ ...options, args: args?.(address === undefined ? `${port}` : new URL(address).port) ?? [] }, open)
  let current = start()

  const untilEnd = async (): Promise<ProcessEnd & { readonly reason: string }> => {
    let isLate = false
    const tooLate = (): void => {
      isLate = true
      current.kill()
    }
    const late = startMaxMs === undefined ? undefined : setTimeout(tooLate, startMaxMs)
    void current.ready.then(given => {
      clearTimeout(late)
      address ??= given
      first.resolve(given)
    })
    const end = await current.ended
    clearTimeout(late)
    const last = end.lastLines.length > 0 ? end.lastLines.join(' ') : end.how
    const unreported = isLate ? `was not ready in ${startMaxMs} ms` : `ended: ${last}`
    return { ...end, reason: end.failure?.reason ?? `The process ${name} ${unreported}.` }
  }

  const supervise = async (): Promise<void> => {
    for (;;) {
      const { how, failure, reason } = await untilEnd()
      if (address === undefined) return first.reject(new StartupError(reason))
      if (stopping.signal.aborted) return
      const ends = countEnd()
      if (ends >= endsMax && failure?.isUnavailable !== true)
        return onGivenUp?.(new Error(`The process ${name} ended ${ends} times within a minute (${how}).`))
      const pauseMs = backoffMs(ends - 1, PAUSE_MIN_MS, PAUSE_MAX_MS)
      onEnded?.(failure?.reason ?? how, pauseMs)
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      current = start()
    }
  }
  const supervised = supervise()

  return {
    name,
    current: () => current,
    ready: first.promise,
    stop: async (graceMs = STOP_MAX_MS) => {
      stopping.abort()
      current.stop()
      const late = setTimeout(() => current.kill(), graceMs)
      await supervised
      clearTimeout(late)
    },
  }
}
