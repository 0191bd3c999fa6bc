import type { World } from '../../src/ports.ts'
import type { Random } from './random.ts'
import type { Cancel, Timeline } from './timeline.ts'

/**
 * An operating system process with a clock of its own. It can end without warning, with all its memory, and it can be
 * stopped and go on later: answers and timers that come meanwhile wait for it.
 */
export type Machine = {
  readonly name: string
  readonly isAlive: () => boolean
  readonly isPaused: () => boolean
  readonly world: World
  /** Runs `work` in this process after the delay: later if it is stopped then, never if it has ended. */
  readonly deliver: (delayMs: number, work: () => void) => Cancel
  readonly kill: () => void
  readonly pause: () => void
  readonly resume: () => void
  /** Sets the wall clock: what an administrator or NTP does. The monotonic clock does not notice. */
  readonly setClock: (offsetMs: number) => void
}

/** The wall clock of a run begins here, whenever it runs. */
export const EPOCH_MS = Date.parse('2026-03-01T08:00:00.000Z')
/** The time that a clock without error shows. */
export const timeOf = (virtualMs: number): string => new Date(EPOCH_MS + virtualMs).toISOString()
/** Quartz clocks differ by some tens of parts per million; ten times that is drawn. */
const DRIFT_MAX = 0.0005
const UPTIME_MAX_MS = 1_000_000_000

export type MachineDependencies = { readonly timeline: Timeline; readonly random: Random }

export const createMachine = (name: string, { timeline, random }: MachineDependencies): Machine => {
  const rate = 1 + (random.next() * 2 - 1) * DRIFT_MAX
  const bootMs = random.integer(0, UPTIME_MAX_MS)
  let offsetMs = 0
  let alive = true
  let paused = false
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
    isAlive: () => alive,
    isPaused: () => paused,
    world,
    deliver,
    kill: () => {
      alive = false
      backlog = []
    },
    pause: () => {
      paused = true
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
