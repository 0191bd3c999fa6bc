import { hashOf } from './history.ts'
import { recordedEntryOf } from './plan.ts'
import type { Beside, Report } from './worker.ts'

/** The results of `npm run simulate`, as text and as JSON. */

export type Results = {
  readonly seeds: number
  readonly from: number
  /** The options of the command with which each seed can be repeated, beside the seed. */
  readonly repeatOptions: string
  /** The number of seeds that have run: fewer than `seeds` after `--fail-fast`. */
  done: number
  virtualMs: number
  steps: number
  readonly counts: Map<string, number>
  readonly failed: Report[]
  /** About the other build of the runs, if they had one: the shortest time side by side, and the modules it consists of. */
  beside?: Beside
  readonly hashes: (readonly [seed: number, hash: string])[]
}

export const HOUR_MS = 3_600_000
const MS_PER_SECOND = 1_000
const COLUMN_WIDTH = 44
const HASHES_SHOWN_MAX = 20

export const addReport = (results: Results, report: Report): void => {
  results.done += 1
  results.virtualMs += report.virtualMs
  results.steps += report.steps
  for (const [name, count] of report.counts) results.counts.set(name, (results.counts.get(name) ?? 0) + count)
  results.hashes.push([report.seed, report.hash])
  if (report.failure) results.failed.push(report)
  if (report.beside)
    results.beside = {
      sideBySideMs: Math.min(report.beside.sideBySideMs, results.beside?.sideBySideMs ?? Number.POSITIVE_INFINITY),
      modules: Math.max(report.beside.modules, results.beside?.modules ?? 0),
    }
}

const row = (name: string, value: string | number): string => `  ${name.padEnd(COLUMN_WIDTH)} ${value}`

const failureText = ({ seed, failure }: Report, repeatOptions: string): readonly string[] => {
  if (failure === undefined) return []
  const { lines, linesBefore, violations, plan } = failure
  return [
    '',
    lines.length < linesBefore
      ? `seed ${seed} breaks a promise. The shortest run that still breaks it, with ${lines.length} of ${linesBefore} lines:`
      : `seed ${seed} breaks a promise. The history of the run:`,
    ...lines,
    ...violations.flatMap(({ promise, detail }) => [`  BROKEN: ${promise}`, `          ${detail}`]),
    `repeat this seed with: npm run simulate -- --seeds 1 --from ${seed}${repeatOptions}`,
    `the plan of this run, for test/simulation/bugs.ts: ${JSON.stringify(plan.map(recordedEntryOf))}`,
  ]
}

const countsText = (counts: ReadonlyMap<string, number>): readonly string[] => [
  '',
  'counts of answers and faults:',
  ...[...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => row(name, count)),
]

const inOrder = ({ hashes }: Results) => hashes.toSorted(([one], [other]) => one - other)

const hashesText = (results: Results): readonly string[] => {
  const hashes = inOrder(results)
  return [
    '',
    'SHA-256 of the histories, which are the same on every machine:',
    ...hashes.slice(0, HASHES_SHOWN_MAX).map(([seed, hash]) => row(`seed ${seed}`, hash)),
    row(`all ${hashes.length} seeds`, hashOf(hashes.map(([, hash]) => hash))),
  ]
}

const besideText = ({ beside }: Results): readonly string[] =>
  beside
    ? [
        `both builds ran side by side for at least ${Math.floor(beside.sideBySideMs / MS_PER_SECOND)} virtual seconds in each run; ` +
          `of the other one, ${beside.modules} modules were loaded`,
      ]
    : []

const summaryText = ({ done, from, virtualMs, steps, failed }: Results, seconds: number): string =>
  `${done} seeds from ${from} in ${seconds.toFixed(1)} s (${(done / seconds).toFixed(1)}/s): ` +
  `${(virtualMs / HOUR_MS).toFixed(1)} virtual hours, ${steps} steps, ${failed.length} failed`

/** `faultsNotSeen`: the faults that should have happened in so many runs. */
export const textOf = (results: Results, faultsNotSeen: readonly string[], seconds: number): string => {
  const { counts, failed, repeatOptions } = results
  const lines = [...countsText(counts), ...failed.flatMap(report => failureText(report, repeatOptions))]
  if (faultsNotSeen.length > 0)
    lines.push('', `these faults never happened, which is a defect of the simulation: ${faultsNotSeen.join(', ')}`)
  return [...lines, ...hashesText(results), '', ...besideText(results), summaryText(results, seconds)].join('\n')
}

export const jsonOf = (results: Results, faultsNotSeen: readonly string[], seconds: number): string =>
  JSON.stringify({
    seeds: results.seeds,
    from: results.from,
    failed: results.failed.map(({ seed }) => seed),
    virtual_hours: results.virtualMs / HOUR_MS,
    steps: results.steps,
    ...(results.beside && { side_by_side_seconds: results.beside.sideBySideMs / MS_PER_SECOND }),
    took_seconds: seconds,
    exercised: Object.fromEntries(results.counts),
    never_happened: faultsNotSeen,
    histories: Object.fromEntries(inOrder(results)),
  })
