import { hashOf } from './history.ts'
import { openEngine } from './postgres.ts'
import type { Plan } from './plan.ts'
import { shrink } from './shrink.ts'
import { type Options, type Outcome, simulate } from './simulate.ts'
import type { Build } from '../support/builds.ts'
import { loadBuild, thisBuild } from './simulatedBuilds.ts'

/** A worker process of the simulation: runs the seeds that it is sent, one after the other, and sends back a report of each. */

export type Job = Omit<Options, 'other'> & { readonly isShrunk?: boolean }
export type Failure = {
  readonly violations: Outcome['violations']
  /** The history of the shortest run that still fails. */
  readonly lines: readonly string[]
  /** The number of lines in the history of the whole run. */
  readonly linesBefore: number
  /** The plan of the shortest run. With it the seed fails again, even if plans are drawn differently by then. */
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
  readonly beside?: Beside
}
/** The other build of a run. */
export type Beside = {
  readonly sideBySideMs: number
  /** The number of its modules that were loaded. */
  readonly modules: number
}
/** Sent repeatedly during a run. */
export type Progress = { readonly seed: number; readonly reachedMs: number }

/** Settings of the engine; `planner` are statements that choose other query plans. */
export type WorkerSettings = {
  readonly statementsPerVacuum?: number
  readonly planner?: string
  readonly beside?: Build | undefined
}

const { planner, beside, ...options } = JSON.parse(process.argv[2] ?? '{}') as WorkerSettings
const other = beside && (await loadBuild(beside))
const tablesOf = [...(other ? [other] : []), thisBuild].map(({ createTables }) => createTables)
const engine = await openEngine({ ...options, tablesOf })
if (planner !== undefined) await engine.query(planner)

const failureOf = async (outcome: Outcome, { isShrunk, ...options }: Job): Promise<Failure> => {
  const shortest = isShrunk ? await shrink(engine, outcome, { ...options, other }) : outcome
  return {
    violations: shortest.violations,
    lines: shortest.history.lines,
    linesBefore: outcome.history.lines.length,
    plan: shortest.plan,
  }
}

let currentSeed: number | undefined
// An unhandled rejection or exception is a defect of the simulation or of the service, and ends the process; the seed is named.
process.on('uncaughtExceptionMonitor', () => void process.stderr.write(`seed ${currentSeed}: an uncaught error\n`))
// Ctrl-C reaches every process of a terminal; the main process ends this one after its seed.
process.on('SIGINT', () => undefined)
process.on('message', (job: Job) => {
  currentSeed = job.seed
  void (async () => {
    const onProgress = (virtualMs: number): void => void process.send?.({ seed: job.seed, reachedMs: virtualMs })
    const outcome = await simulate(engine, { ...job, other }, onProgress)
    const { seed, virtualMs, steps, history, violations, sideBySideMs } = outcome
    const report: Report = {
      seed,
      virtualMs,
      steps,
      hash: hashOf(history.lines),
      counts: [...history.counts],
      ...(other && { beside: { sideBySideMs, modules: other.modules.size } }),
    }
    const failed = violations.length > 0
    process.send?.(failed ? { ...report, failure: await failureOf(outcome, job) } : report)
  })()
})
process.send?.('ready')
