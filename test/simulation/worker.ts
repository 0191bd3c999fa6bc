import { hashOf } from './history.ts'
import { openEngine } from './postgres.ts'
import type { Plan } from './plan.ts'
import { shrink } from './shrink.ts'
import { type Options, type Outcome, simulate } from './simulate.ts'

/** A process that runs the seeds it is sent, one after the other, and tells what each came to. */

export type Job = Options & { readonly isShrunk?: boolean }
export type Failure = {
  readonly violations: Outcome['violations']
  /** How many entries of the plan the shortest run that still fails has, of how many. */
  readonly kept: number
  readonly planned: number
  readonly lines: readonly string[]
  /** Of the shortest run: with it the seed fails again, however plans are drawn by then. */
  readonly plan: Plan
}
export type Report = {
  readonly seed: number
  readonly virtualMs: number
  readonly steps: number
  /** SHA-256 of the history. */
  readonly hash: string
  readonly counts: readonly (readonly [string, number])[]
  readonly failure?: Failure
}
/** Sent now and then by a run that is under way. */
export type Progress = { readonly seed: number; readonly reachedMs: number }

const engine = await openEngine()

const failureOf = async (outcome: Outcome, isShrunk: boolean): Promise<Failure> => {
  const shortest = isShrunk ? await shrink(engine, outcome) : outcome
  return {
    violations: shortest.violations,
    kept: shortest.history.lines.length,
    planned: outcome.history.lines.length,
    lines: shortest.history.lines,
    plan: shortest.plan,
  }
}

let seedAtWork: number | undefined
// A failure that no caller awaits is a defect of the simulation or of the service: the seed is named before the process ends.
process.on(
  'uncaughtExceptionMonitor',
  () => void process.stderr.write(`seed ${seedAtWork}: a failure that was not awaited\n`),
)
process.on('message', (job: Job) => {
  seedAtWork = job.seed
  void (async () => {
    const onProgress = (virtualMs: number): void => void process.send?.({ seed: job.seed, reachedMs: virtualMs })
    const outcome = await simulate(engine, job, onProgress)
    const { seed, virtualMs, steps, history, violations } = outcome
    const report: Report = { seed, virtualMs, steps, hash: hashOf(history.lines), counts: [...history.counts] }
    const failed = violations.length > 0
    process.send?.(failed ? { ...report, failure: await failureOf(outcome, job.isShrunk === true) } : report)
  })()
})
process.send?.('ready')
