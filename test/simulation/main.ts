import { availableParallelism } from 'node:os'
import { SingleBar } from 'cli-progress'
import { Command, InvalidArgumentError } from 'commander'
import { neverHappened } from './faults.ts'
import { runSeeds } from './workerPool.ts'
import { found } from './found.ts'
import { hashOf } from './history.ts'
import { noteOf, type Plan, plannedAs } from './plan.ts'
import type { Progress, Report } from './worker.ts'

/** `npm run simulate`: the whole service under faults, run by run, each replayed exactly by its seed. */

const HOUR_MS = 3_600_000
const MS_PER_SECOND = 1_000
const COLUMN = 44

const positive = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('A number above zero is needed.')
  return value
}

const planOf = (bug: string): Plan => {
  const kept = found.find(one => one.bug === bug)
  if (kept === undefined) throw new InvalidArgumentError(`One of: ${found.map(one => one.bug).join('; ')}.`)
  return kept.plan.map(plannedAs)
}

const print = (line = ''): void => void process.stdout.write(`${line}\n`)

const printFailure = ({ seed, failure }: Report): void => {
  if (failure === undefined) return
  print(`\nseed ${seed} breaks a promise; its shortest run has ${failure.kept} of ${failure.planned} lines:`)
  for (const line of failure.lines) print(line)
  for (const { promise, detail } of failure.violations) print(`  BROKEN: ${promise}\n          ${detail}`)
  print(`again: npm run simulate -- --seeds 1 --from ${seed}`)
  print(`its plan, to be kept with the seed in test/simulation/found.ts: ${JSON.stringify(failure.plan.map(noteOf))}`)
}

const printCounts = (counts: ReadonlyMap<string, number>): void => {
  print('\nexercised:')
  for (const [name, count] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    print(`  ${name.padEnd(COLUMN)} ${count}`)
}

const HASHES_SHOWN_MAX = 20

/** To be compared with those of another machine, one by one or all at once. */
const printHashes = (hashes: readonly (readonly [seed: number, hash: string])[]): void => {
  print('\nSHA-256 of the histories:')
  for (const [seed, hash] of hashes.slice(0, HASHES_SHOWN_MAX)) print(`  ${`seed ${seed}`.padEnd(COLUMN)} ${hash}`)
  print(`  ${`all ${hashes.length} of them`.padEnd(COLUMN)} ${hashOf(hashes.map(([, hash]) => hash))}`)
}

/** So many seeds meet every fault, or the draw is wrong. */
const ENOUGH_SEEDS = 500
const printNever = (names: readonly string[]): void => {
  if (names.length > 0) print(`\nNEVER HAPPENED, a defect of the simulation: ${names.join(', ')}`)
}

type Asked = {
  readonly seeds: number
  readonly from: number
  readonly hours?: number
  readonly processes: number
  readonly json?: true
  readonly shrink: boolean
  readonly failFast?: true
  readonly found?: Plan
}

const main = async ({ seeds, from, hours, processes, json, shrink, failFast, found: plan }: Asked): Promise<void> => {
  const beganMs = performance.now()
  const counts = new Map<string, number>()
  const failed: Report[] = []
  const arrived: [seed: number, hash: string][] = []
  let virtualMs = 0
  let steps = 0
  let done = 0
  const bar = new SingleBar({
    format: '{bar} {done}/{seeds} seeds, {rate}/s, {hours} virtual hours, {failed} failed, {eta_formatted} left',
    stream: process.stderr,
    noTTYOutput: false,
  })
  const jobs = Array.from({ length: seeds }, (_, index) => ({
    seed: from + index,
    isShrunk: shrink,
    ...(hours === undefined ? {} : { busyMs: hours * HOUR_MS }),
    ...(plan && { plan }),
  }))
  // The virtual time of runs that have not ended: a run of a day takes minutes.
  const reachedMs = new Map<number, number>()
  const show = (): void => {
    const rate = (done / ((performance.now() - beganMs) / MS_PER_SECOND)).toFixed(1)
    const openMs = [...reachedMs.values()].reduce((sum, ms) => sum + ms, 0)
    const shownHours = ((virtualMs + openMs) / HOUR_MS).toFixed(1)
    const open = hours === undefined ? 0 : Math.min(openMs / (hours * HOUR_MS), reachedMs.size)
    bar.update(done + open, { done, seeds, rate, hours: shownHours, failed: failed.length })
  }
  const onProgress = (progress: Progress): void => {
    reachedMs.set(progress.seed, progress.reachedMs)
    show()
  }
  bar.start(seeds, 0, { done, seeds, rate: 0, hours: 0, failed: 0 })
  for await (const report of runSeeds(jobs, processes, onProgress)) {
    reachedMs.delete(report.seed)
    done += 1
    virtualMs += report.virtualMs
    steps += report.steps
    for (const [name, count] of report.counts) counts.set(name, (counts.get(name) ?? 0) + count)
    arrived.push([report.seed, report.hash])
    if (report.failure) failed.push(report)
    show()
    if (failFast && failed.length > 0) break
  }
  bar.stop()
  const never = done >= ENOUGH_SEEDS && plan === undefined ? neverHappened(counts) : []
  const hashes = arrived.toSorted(([one], [other]) => one - other)
  const tookS = (performance.now() - beganMs) / MS_PER_SECOND
  if (json) {
    const exercised = Object.fromEntries(counts)
    print(
      JSON.stringify({
        seeds,
        from,
        failed: failed.map(({ seed }) => seed),
        virtual_hours: virtualMs / HOUR_MS,
        steps,
        took_seconds: tookS,
        exercised,
        never_happened: never,
        histories: Object.fromEntries(hashes),
      }),
    )
  } else {
    printCounts(counts)
    for (const report of failed) printFailure(report)
    printNever(never)
    printHashes(hashes)
    print(
      `\n${seeds} seeds from ${from} in ${tookS.toFixed(1)} s (${(seeds / tookS).toFixed(1)}/s): ` +
        `${(virtualMs / HOUR_MS).toFixed(1)} virtual hours, ${steps} steps, ${failed.length} failed`,
    )
  }
  process.exitCode = failed.length + never.length > 0 ? 1 : 0
}

await new Command('simulate')
  .description('Runs the whole service in one process, on servers in memory and under faults that a seed draws.')
  .option('--seeds <count>', 'how many seeds to run', positive, 100)
  .option('--from <seed>', 'the first seed', positive, 1)
  .option('--hours <hours>', 'virtual hours that each run is busy for, in place of some seconds', positive)
  .option('--processes <count>', 'how many processes run seeds', positive, availableParallelism())
  .option('--no-shrink', 'report a failing seed as it is, and not the shortest run that still fails')
  .option('--fail-fast', 'end with the first seed that fails')
  .option('--found <bug>', 'the plan that is kept of this defect, in place of one that each seed draws', planOf)
  .option('--json', 'the result as JSON')
  .action(main)
  .parseAsync()
