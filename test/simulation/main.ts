import { mkdtemp } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { createCleanupStack } from '../../src/lib/cleanupStack.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { type Build, openBuild } from '../support/builds.ts'
import { removeFolder } from '../support/folders.ts'
import { neverHappened } from './faults.ts'
import { type Found, actual } from './bugs.ts'
import { planEntryOf } from './plan.ts'
import { startProgressBar } from './progressBar.ts'
import { busyMsBeside } from './replacements.ts'
import { addReport, HOUR_MS, jsonOf, type Results, textOf } from './report.ts'
import type { Job } from './worker.ts'
import { runSeeds } from './workerPool.ts'

/** The command `npm run simulate`: runs the whole service under faults that are drawn from seeds, and checks its guarantees. */

const MS_PER_SECOND = 1_000
/** In so many seeds every fault happens, unless the draw has a defect. */
const SEEDS_FOR_ALL_FAULTS = 500
/** The exit code of a process that SIGINT ended. */
const INTERRUPTED = 130
/** To find the shortest run that fails takes up to hundreds of runs. */
const SHRUNK_MAX_MS = 300_000

type CommandOptions = {
  readonly seeds: number
  readonly from: number
  readonly hours?: number
  readonly processes: number
  readonly json?: true
  readonly shrink: boolean
  readonly failFast?: true
  readonly beside?: string
  readonly actual?: Found
}

const positiveNumber = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above zero.')
  return value
}

const defect = (bug: string): Found => {
  const defect = actual.find(one => one.bug === bug)
  if (defect === undefined)
    throw new InvalidArgumentError(`It must be one of: ${actual.map(one => one.bug).join('; ')}.`)
  return defect
}

/** The duration of each run; undefined for the usual one of some seconds. */
const busyMsOf = ({ hours, beside }: CommandOptions): number | undefined =>
  beside === undefined ? hours && hours * HOUR_MS : busyMsBeside((hours ?? 1) * HOUR_MS)

const jobsOf = (options: CommandOptions): readonly Job[] => {
  const { seeds, from, shrink, actual: defect } = options
  const busyMs = busyMsOf(options)
  return Array.from({ length: seeds }, (_, index) => ({
    seed: from + index,
    isShrunk: shrink && (busyMs ?? 0) <= SHRUNK_MAX_MS,
    ...(busyMs === undefined ? {} : { busyMs }),
    ...(defect && { plan: defect.plan.map(planEntryOf) }),
  }))
}

const resultsBefore = ({ seeds, from, hours, beside, actual: defect }: CommandOptions): Results => ({
  seeds,
  from,
  repeatOptions:
    (beside === undefined ? '' : ` --beside ${beside}`) +
    (hours === undefined ? '' : ` --hours ${hours}`) +
    (defect ? ` --found '${defect.bug}'` : ''),
  done: 0,
  virtualMs: 0,
  steps: 0,
  counts: new Map(),
  failed: [],
  hashes: [],
})

const run = async (options: CommandOptions, beside: Build | undefined): Promise<void> => {
  const { processes, json, failFast, actual: defect } = options
  const beganMs = performance.now()
  const results = resultsBefore(options)
  const bar = startProgressBar(results, busyMsOf(options))
  // The seeds in progress end first; the results of those that have run are printed.
  let isInterrupted = false
  process.once('SIGINT', () => (isInterrupted = true))
  for await (const report of runSeeds(jobsOf(options), processes, bar.onProgress, { beside })) {
    addReport(results, report)
    bar.onEnd(report.seed)
    if (report.failure) process.stderr.write(`\nseed ${report.seed} breaks a promise\n`)
    if (isInterrupted || (failFast && results.failed.length > 0)) break
  }
  bar.stop()
  const isComplete = results.done >= SEEDS_FOR_ALL_FAULTS && defect === undefined
  const faultsNotSeen = isComplete ? neverHappened(results.counts) : []
  const seconds = (performance.now() - beganMs) / MS_PER_SECOND
  process.stdout.write(`${(json ? jsonOf : textOf)(results, faultsNotSeen, seconds)}\n`)
  process.exitCode = results.failed.length + faultsNotSeen.length > 0 ? 1 : isInterrupted ? INTERRUPTED : 0
}

const complain = (error: unknown): void =>
  void process.stderr.write(
    `${error instanceof StartupError ? error.message : String((error as Error).stack ?? error)}\n`,
  )

const main = async (options: CommandOptions): Promise<void> => {
  const cleanup = createCleanupStack(complain)
  try {
    if (options.beside === undefined) return await run(options, undefined)
    const folder = await mkdtemp(join(tmpdir(), 'ledger-beside-'))
    cleanup.defer(() => removeFolder(folder))
    await run(options, await openBuild(options.beside, folder, cleanup))
  } catch (error) {
    complain(error)
    process.exitCode = 1
  } finally {
    await cleanup.run()
  }
}

await new Command('npm run simulate --')
  .description(
    'Runs the whole service in one process, on simulated servers and virtual time, with clients and faults that are drawn from ' +
      'a seed, and checks every promise. The same seed gives the same run on every machine.',
  )
  .option('--seeds <count>', 'number of seeds to run', positiveNumber, 100)
  .option('--from <seed>', 'the first seed', positiveNumber, 1)
  .option('--hours <hours>', 'virtual duration of each run, instead of some seconds', positiveNumber)
  .option(
    '--beside <revision>',
    'run the service of this revision beside this one: processes are replaced forward and back, and both stay side by side for an ' +
      'hour, or `--hours`',
  )
  .option('--processes <count>', 'number of processes that run seeds', positiveNumber, availableParallelism())
  .option('--no-shrink', 'show the whole run of a failing seed instead of the shortest run that still fails')
  .option('--fail-fast', 'stop at the first failing seed')
  .option('--found <bug>', 'run the recorded plan of this defect (bugs.ts) instead of drawn ones', defect)
  .option('--json', 'print the result as JSON')
  .action(main)
  .parseAsync()
