import type { World } from '../../src/ports.ts'
import type { Random } from './random.ts'
import type { Cancel, Timeline } from './timeline.ts'

/**
 * A process with a clock of its own. It can be killed without warning, and it can be paused and resumed: answers and timers
 * that arrive while it is paused are delivered afterwards.
 */
export type Machine = {
  readonly name: string
  /** The name of the build that runs in it. */
  readonly build: string
  readonly isAlive: () => boolean
  readonly isPaused: () => boolean
  /** How often it has been paused. */
  readonly pauses: () => number
  readonly world: World
  /** Runs `work` in this process after the delay: later if the process is paused then, never if it was killed. */
  readonly deliver: (delayMs: number, work: () => void) => Cancel
  readonly kill: () => void
  readonly pause: () => void
  readonly resume: () => void
  /** Sets the wall clock, like an administrator or NTP. The monotonic clock is not changed. */
  readonly setClock: (offsetMs: number) => void
}

export const THIS_BUILD = 'this build'

/** The wall-clock time at which every run begins. */
export const EPOCH_MS = Date.parse('2026-03-01T08:00:00.000Z')
/** The wall-clock time at this virtual time, on a clock without error. */
export const timeOf = (virtualMs: number): string => new Date(EPOCH_MS + virtualMs).toISOString()
/** Real quartz clocks drift by some tens of parts per million; simulated ones by up to ten times that. */
const DRIFT_MAX = 0.0005
const UPTIME_MAX_MS = 1_000_000_000

export type MachineDependencies = { readonly timeline: Timeline; readonly random: Random; readonly build?: string }

export const createMachine = (name: string, { timeline, random, build = THIS_BUILD }: MachineDependencies): Machine => {
  const rate = 1 + (random.next() * 2 - 1) * DRIFT_MAX
  const bootMs = random.integer(0, UPTIME_MAX_MS)
  let offsetMs = 0
  let alive = true
  let paused = false
  let pauses = 0
  let backlog: (() => void)[] = []

  const deliver = (delayMs: number, work: () => void): Cancel =>
    timeline.after(delayMs, () => {
      if (!alive) return
      if (paused) backlog.push(work)
      else work()
    })

  const elapsedMs = (): number => timeline.nowMs() * rate
  const world: World = {
    now: () => Math.floor(EPOCH_MS + offsetMs + elapsedMs()),
    monotonicMs: () => bootMs + elapsedMs(),
    randomBytes: count => random.bytes(count),
    sleep: (timeMs, signal) =>
      new Promise(resolve => {
        if (signal?.aborted) return resolve()
        const end = (): void => {
          signal?.removeEventListener('abort', end)
          cancel()
          resolve()
        }
        const cancel = deliver(timeMs / rate, end)
        signal?.addEventListener('abort', end)
      }),
    crashPoint: () => undefined,
  }

  return {
    name,
    build,
    isAlive: () => alive,
    isPaused: () => paused,
    pauses: () => pauses,
    world,
    deliver,
    kill: () => {
      alive = false
      backlog = []
    },
    pause: () => {
      paused = true
      pauses += 1
    },
    resume: () => {
      paused = false
      const waiting = backlog
      backlog = []
      for (const work of waiting) deliver(random.next(), work)
    },
    setClock: to => {
      offsetMs = to
    },
  }
}
