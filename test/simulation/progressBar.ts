import { SingleBar } from 'cli-progress'
import { HOUR_MS, type Results } from './report.ts'
import type { Progress } from './worker.ts'

/** The progress bar of `npm run simulate`, which also shows the virtual time of runs that have not ended. */
export type ProgressBar = {
  readonly onProgress: (progress: Progress) => void
  readonly onEnd: (seed: number) => void
  readonly stop: () => void
}

const MS_PER_SECOND = 1_000

/** `busyMs`: the virtual duration of each run, where it is known. */
export const startProgressBar = (results: Results, busyMs: number | undefined): ProgressBar => {
  const beganMs = performance.now()
  const reachedMs = new Map<number, number>()
  const bar = new SingleBar({
    format: '{bar} {done}/{seeds} seeds, {rate}/s, {hours} virtual hours, {failed} failed, {eta_formatted} left',
    stream: process.stderr,
    noTTYOutput: true,
    notTTYSchedule: 30_000,
  })
  const show = (): void => {
    const { done, seeds, virtualMs, failed } = results
    const rate = (done / ((performance.now() - beganMs) / MS_PER_SECOND)).toFixed(1)
    const openMs = [...reachedMs.values()].reduce((sum, ms) => sum + ms, 0)
    const hours = ((virtualMs + openMs) / HOUR_MS).toFixed(1)
    const open = busyMs === undefined ? 0 : Math.min(openMs / busyMs, reachedMs.size)
    bar.update(done + open, { done, seeds, rate, hours, failed: failed.length })
  }
  bar.start(results.seeds, 0, { done: 0, seeds: results.seeds, rate: 0, hours: 0, failed: 0 })
  return {
    onProgress: progress => {
      reachedMs.set(progress.seed, progress.reachedMs)
      show()
    },
    onEnd: seed => {
      reachedMs.delete(seed)
      show()
    },
    stop: () => bar.stop(),
  }
}
