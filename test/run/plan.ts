import { globSync, readFileSync, writeFileSync } from 'node:fs'

/** Which files are run, in which order, and which of them at the same time as others. */

/** Files that one worker runs, one after the other. */
export type Unit = readonly string[]
export type Plan = {
  /** Run by all workers, the most expensive first. */
  readonly together: readonly Unit[]
  /** Run one after the other once nothing else runs. */
  readonly alone: readonly string[]
}
/** Seconds by file, of an earlier run. */
export type Costs = Readonly<Record<string, number>>

const EVERY = 'test/**/*.test.ts'
/** `npm run test:soak` */
const SOAK = 'test/soak/**'

/** Files that share the Kafka broker of their process. Another worker would start a second one. */
const ON_ONE_WORKER: readonly Unit[] = [['test/adapters/kafka.test.ts', 'test/scripts/ledger/doctor.test.ts']]

/** Files that compare times which they measure, or that use all processors themselves. */
const ALONE = new Set([
  'test/faults/attackers.test.ts',
  'test/http/server/loadShedding.test.ts',
  'test/simulation/simulation.test.ts',
])

/** All files that this plan names. */
export const NAMED_FILES: readonly string[] = [...ON_ONE_WORKER.flat(), ...ALONE]

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
  patterns.length === 0 ? globSync(EVERY, { exclude: [SOAK] }).toSorted() : globSync([...patterns]).toSorted()

export const planOf = (files: readonly string[], costs: Costs): Plan => {
  const costOf = (unit: Unit): number => unit.reduce((sum, file) => sum + (costs[file] ?? UNKNOWN_COST_S), 0)
  const grouped = ON_ONE_WORKER.map(unit => unit.filter(file => files.includes(file)))
  const single = files.filter(file => !ALONE.has(file) && !grouped.flat().includes(file)).map(file => [file])
  const units = [...grouped.filter(unit => unit.length > 0), ...single]
  return {
    together: units.toSorted((a, b) => costOf(b) - costOf(a)),
    alone: files.filter(file => ALONE.has(file)),
  }
}
