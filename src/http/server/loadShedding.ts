import type { RequestHandler, Response as Outgoing } from 'express'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { networkOf } from './clientAddress.ts'
import { type Capacity, type CapacityLease, createCapacity, createCapacityLease } from './capacity.ts'
import type { Pace } from './pacing.ts'
import { Problem } from '../response/problemCatalogue.ts'
import { sendProblem } from '../response/respond.ts'

/** Load shedding: refuses requests, right after the framing checks, when the process has no capacity for them. */

/** The event loop delay from which requests are refused, well below the 200 ms that clients notice. */
const LOOP_DELAY_MAX_MS = 100
const LOOP_RESOLUTION_MS = 10
const LOOP_WINDOW_MS = 250
/** The measurement ends after so many windows without a request. */
const IDLE_WINDOWS = 40
const NANOSECONDS_PER_MS = 1e6

/**
 * The expected length of the event loop turn in which a request arrives: the mean over time, not over turns. A loop
 * that is blocked for 400 ms and free for 20 has more short turns than long ones, but nearly every request arrives in a
 * long one.
 */
const turnMsOf = ({ mean, stddev }: { readonly mean: number; readonly stddev: number }): number =>
  (mean ** 2 + stddev ** 2) / mean / NANOSECONDS_PER_MS

type DelayHistogram = Pick<
  ReturnType<typeof monitorEventLoopDelay>,
  'count' | 'mean' | 'stddev' | 'enable' | 'disable' | 'reset'
>

/**
 * Compares the last two windows, so that one slow turn of the loop does not count as overload. The measurement wakes
 * the process a hundred times a second, so it is on only while there are requests. The first ones after a pause are
 * admitted.
 */
export const watchLoop = (
  histogram: DelayHistogram = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS }),
  windowMs = LOOP_WINDOW_MS,
): (() => boolean) => {
  let before = 0
  let now = 0
  let idleWindows = 0
  let timer: NodeJS.Timeout | undefined
  const end = (): void => {
    clearInterval(timer)
    timer = undefined
    histogram.disable()
    before = now = 0
  }
  const endWindow = (): void => {
    // A turn longer than a window leaves a window without measurements, which says nothing about the load.
    if (histogram.count === 0) return
    idleWindows += 1
    if (idleWindows > IDLE_WINDOWS) return end()
    before = now
    now = turnMsOf(histogram)
    histogram.reset()
  }
  return () => {
    idleWindows = 0
    if (timer === undefined) {
      histogram.reset()
      histogram.enable()
      timer = setInterval(endWindow, windowMs).unref()
    }
    return Math.min(before, now) > LOOP_DELAY_MAX_MS
  }
}

export type LoadShedding = {
  /** Aborts at shutdown: from then on requests on open connections are refused. */
  readonly stopping: AbortSignal
  /** Paths that are exempt: health endpoints are answered under any load. */
  readonly exempt: readonly string[]
  /** Whether the process is overloaded; by the delay of its event loop when absent. */
  readonly isOverloaded?: () => boolean
  readonly capacity?: Capacity
  readonly pace: Pick<Pace, 'isOverPace'>
}

/** The account of a request whose caller is not known, or not known yet. */
export const addressAccount = ({ locals }: Pick<Outgoing, 'locals'>): string =>
  `address ${networkOf(String(locals['address']))}`

/** Undefined for paths that are exempt from load shedding. */
export const capacityLeaseOf = ({ locals }: Pick<Outgoing, 'locals'>): CapacityLease | undefined =>
  locals['capacityLease'] as CapacityLease | undefined

export const loadShedding = ({
  stopping,
  exempt,
  isOverloaded = watchLoop(),
  capacity = createCapacity(),
  pace,
}: LoadShedding): RequestHandler => {
  const admit = (res: Outgoing): void => {
    if (stopping.aborted) throw new Problem('shutting_down', { headers: { Connection: 'close' } })
    // If some accounts exceed their pace, only their requests are refused, once the account is known (pacing.ts).
    const underOverload = isOverloaded()
    if (underOverload && !pace.isOverPace()) throw new Problem('overloaded')
    res.locals['underOverload'] = underOverload
    const lease = createCapacityLease(capacity)
    lease.takeSlot(addressAccount(res))
    res.once('close', lease.close)
    res.locals['capacityLease'] = lease
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
