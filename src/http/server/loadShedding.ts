import type { RequestHandler, Response as Outgoing } from 'express'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { networkOf } from './clientAddress.ts'
import { type Capacity, createCapacity, holdingOf } from './capacity.ts'
import type { Pace } from './pacing.ts'
import { Problem } from '../response/problemCatalogue.ts'
import { sendProblem } from '../response/respond.ts'

/** Refuses requests before anything is looked at or paid for, when there is no capacity for them. */

/** Begins to turn requests away well before the delay reaches 200 ms. */
const LOOP_DELAY_MAX_MS = 100
const LOOP_RESOLUTION_MS = 10
const LOOP_WINDOW_MS = 250
const NANOSECONDS_PER_MS = 1e6

/**
 * How long the turn is that a request meets which arrives at any time: the mean over time, not over turns. A loop that
 * is blocked for 400 ms and free for 20 has more short turns than long ones, and hardly anybody meets a short one.
 */
const turnMsOf = ({ mean, stddev }: { readonly mean: number; readonly stddev: number }): number =>
  (mean ** 2 + stddev ** 2) / mean / NANOSECONDS_PER_MS

/** By the last two windows: one slow turn of the loop, however slow, is not taken for a load. */
const watchLoop = (): (() => boolean) => {
  const histogram = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  histogram.enable()
  let before = 0
  let now = 0
  setInterval(() => {
    // A turn longer than a window leaves one without a measurement, which says nothing about the load.
    if (histogram.count === 0) return
    before = now
    now = turnMsOf(histogram)
    histogram.reset()
  }, LOOP_WINDOW_MS).unref()
  return () => Math.min(before, now) > LOOP_DELAY_MAX_MS
}

export type LoadShedding = {
  /** From then on the requests of connections that are still open are sent elsewhere. */
  readonly stopping: AbortSignal
  /** Paths that are answered under any load: they say how the service is. */
  readonly exempt: readonly string[]
  /** Whether the process has more than it can do; by the delay of its event loop when absent. */
  readonly isOverloaded?: () => boolean
  readonly capacity?: Capacity
  readonly pace: Pick<Pace, 'isBusy'>
}

/** The account of a request whose caller is not known yet, or never will be. */
export const addressAccount = ({ locals }: Pick<Outgoing, 'locals'>): string =>
  `address ${networkOf(String(locals['address']))}`

export const loadShedding = ({
  stopping,
  exempt,
  isOverloaded = watchLoop(),
  capacity = createCapacity(),
  pace,
}: LoadShedding): RequestHandler => {
  const admit = (res: Outgoing): void => {
    if (stopping.aborted) throw new Problem('shutting_down', { headers: { Connection: 'close' } })
    // Where some ask for more than their pace, they are refused, and the others served (pace.ts).
    const underOverload = isOverloaded()
    if (underOverload && !pace.isBusy()) throw new Problem('overloaded')
    res.locals['underOverload'] = underOverload
    const holding = holdingOf(capacity)
    holding.work(addressAccount(res))
    res.once('close', holding.leave)
    res.locals['holding'] = holding
  }
  return (req, res, next) => {
    try {
      if (!exempt.includes(req.path)) admit(res)
    } catch (error) {
      if (error instanceof Problem) return sendProblem(req, res, error)
      throw error
    }
    next()
  }
}
