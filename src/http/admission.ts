import type { Request as Incoming, RequestHandler, Response as Outgoing } from 'express'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Problem } from './problem.ts'
import { sendProblem } from './respond.ts'

/** Who is turned away at the door, before anything is looked at or paid for: there is no room. */

/** More at once than this would only wait in line; better to be told, and to come again. */
const IN_FLIGHT_MAX = 1_000
/** Begins to turn requests away well before the delay reaches 200 ms. */
const LOOP_DELAY_MAX_MS = 100
const LOOP_RESOLUTION_MS = 10
/** Long enough that one slow turn of the loop is not taken for a load. */
const LOOP_WINDOW_MS = 500
const NANOSECONDS_PER_MS = 1e6

/** By the median delay of the event loop over the last window. */
const watchLoop = (): (() => boolean) => {
  const histogram = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  histogram.enable()
  let delayMs = 0
  setInterval(() => {
    delayMs = histogram.percentile(50) / NANOSECONDS_PER_MS
    histogram.reset()
  }, LOOP_WINDOW_MS).unref()
  return () => delayMs > LOOP_DELAY_MAX_MS
}

export type Admission = {
  /** From then on the requests of connections that are still open are sent elsewhere. */
  readonly stopping: AbortSignal
  /** Paths that are answered under any load: they say how the service is. */
  readonly exempt: readonly string[]
  /** Whether the process has more than it can do; by the delay of its event loop when absent. */
  readonly isOverloaded?: () => boolean
}

export const admission = ({ stopping, exempt, isOverloaded = watchLoop() }: Admission): RequestHandler => {
  let inFlight = 0
  const leave = (): void => {
    inFlight -= 1
  }
  const loadFault = (): Problem | undefined => {
    if (stopping.aborted) return new Problem('shutting_down', { headers: { Connection: 'close' } })
    return inFlight >= IN_FLIGHT_MAX || isOverloaded() ? new Problem('overloaded') : undefined
  }
  return (req: Incoming, res: Outgoing, next) => {
    const fault = exempt.includes(req.path) ? undefined : loadFault()
    if (fault) {
      sendProblem(req, res, fault)
      return
    }
    inFlight += 1
    res.once('close', leave)
    next()
  }
}
