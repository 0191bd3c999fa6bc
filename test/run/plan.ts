import { globSync, readFileSync, writeFileSync } from 'node:fs'

/** The plan of a test run: the files, their order, and which of them run concurrently. */

/** Files that the same worker runs, one after the other. */
export type FileGroup = readonly string[]
export type Plan = {
  /** Run by all workers, the slowest first. */
  readonly concurrent: readonly FileGroup[]
  /** Run one after the other beside those, on the processor time that they leave: each uses all processors itself. */
  readonly background: readonly string[]
  /** Run one after the other when all others have ended. */
  readonly exclusive: readonly string[]
}
/** The duration of each file in an earlier run, in seconds. */
export type Costs = Readonly<Record<string, number>>

const ALL_TEST_FILES = 'test/**/*.test.ts'
/** Run by `npm run test:soak`. */
const SOAK_TEST_FILES = 'test/soak/**'

/** Files that share the Kafka broker of their worker; two workers would start two brokers. */
const FILES_OF_ONE_WORKER: readonly FileGroup[] = [
  ['test/adapters/kafka.test.ts', 'test/scripts/ledger/doctor.test.ts'],
]

/** Files that use all processors themselves, and whose cases run on virtual time. */
const BACKGROUND_FILES = new Set(['test/simulation/simulation.test.ts'])

/** Files that compare measured times, or block a service so long that it must not wait for a processor as well. */
const EXCLUSIVE_FILES = new Set([
  'test/browser/console/budget.test.ts',
  'test/faults/attackers.test.ts',
  'test/http/admission/blockedLoop.test.ts',
  'test/http/admission/overload.test.ts',
])

/** All files that this plan names. */
export const NAMED_FILES: readonly string[] = [...FILES_OF_ONE_WORKER.flat(), ...BACKGROUND_FILES, ...EXCLUSIVE_FILES]

const UNKNOWN_COST_S = 3
const RECORDED_FROM_S = 1
const costsUrl = new URL('costs.json', import.meta.url)

export const readCosts = (): Costs => JSON.parse(readFileSync(costsUrl, 'utf8')) as Costs

export const writeCosts = (costs: Costs): void => {
  const worth = Object.entries(costs).filter(([, seconds]) => seconds >= RECORDED_FROM_S)
  const slowestFirst = worth.map(([file, s]) => [file, Math.round(s)] as const).toSorted(([, a], [, b]) => b - a)
  writeFileSync(costsUrl, `${JSON.stringify(Object.fromEntries(slowestFirst), undefined, 2)}\n`)
}

/** The files that match the patterns; without patterns all files except the soak tests. */
export const filesOf = (patterns: readonly string[]): string[] =>
  patterns.length === 0
    ? globSync(ALL_TEST_FILES, { exclude: [SOAK_TEST_FILES] }).toSorted()
    : globSync([...patterns]).toSorted()

export const planOf = (files: readonly string[], costs: Costs): Plan => {
  const costOf = (group: FileGroup): number => group.reduce((sum, file) => sum + (costs[file] ?? UNKNOWN_COST_S), 0)
  const onOneWorker = FILES_OF_ONE_WORKER.map(group => group.filter(file => files.includes(file)))
  const others = new Set([...onOneWorker.flat(), ...BACKGROUND_FILES, ...EXCLUSIVE_FILES])
  const single = files.filter(file => !others.has(file)).map(file => [file])
  const groups = [...onOneWorker.filter(group => group.length > 0), ...single]
  return {
    concurrent: groups.toSorted((a, b) => costOf(b) - costOf(a)),
    background: files.filter(file => BACKGROUND_FILES.has(file)),
    exclusive: files.filter(file => EXCLUSIVE_FILES.has(file)),
  }
}
