import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { World } from '../ports.ts'

/** How late the event loop is, and the number of requests in flight that follows from it. */

const RESOLUTION_MS = 10
const WINDOW_MS = 250
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
 * Returns the delay in ms: the smaller one of the last two windows, so one slow turn of the loop does not count.
 * The measurement wakes the process a hundred times a second, so it is on only while there are requests.
 */
export const watchLoop = (
  histogram: DelayHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS }),
  windowMs = WINDOW_MS,
): (() => number) => {
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
    return Math.min(before, now)
  }
}

const TURNS_MAX = 72
const TURNS_MIN = 6
const TURNS_STEP = 8
/** Clients notice a delay of 200 ms. */
const LATE_MS = 100
const ON_TIME_MS = 50

/** The requests that may be in progress at once: halved in each window in which the loop is late, and then raised again. */
export const createAdaptiveTurns = (
  { monotonicMs }: Pick<World, 'monotonicMs'>,
  loopDelayMs = watchLoop(),
): (() => number) => {
  let turns = TURNS_MAX
  let nextMs = 0
  return () => {
    if (monotonicMs() < nextMs) return turns
    nextMs = monotonicMs() + WINDOW_MS
    const delayMs = loopDelayMs()
    if (delayMs > LATE_MS) turns = Math.max(TURNS_MIN, Math.floor(turns / 2))
    else if (delayMs < ON_TIME_MS) turns = Math.min(TURNS_MAX, turns + TURNS_STEP)
    return turns
  }
}
