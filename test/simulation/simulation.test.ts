import { availableParallelism } from 'node:os'
import { expect } from 'chai'
import { breadth } from '../support/breadth.ts'
import { neverHappened } from './faults.ts'
import { runSeeds } from './workerPool.ts'
import type { Report, WorkerSettings } from './worker.ts'

const SEEDS_MAX = 500
const SEEDS = breadth(75, SEEDS_MAX)
/** In `npm test` this file runs beside all others: a second engine would take more processor time and end no sooner. */
const PROCESSES = breadth(1, availableParallelism())
/** A fault between the two appends of one command is so rare that only the many seeds have each. */
const isRare = (fault: string): boolean => fault.startsWith('between two appends')
/** Beyond the limit of .mocharc.json, which is that of one case: these are hundreds of runs beside all other test files. */
const MANY_MAX_MS = 1_000_000

/** Run twice or more, each time after other seeds. */
const REPEATED_SEEDS = [42, 5, 42, 75]
/** Their histories once depended on the order of rows for which a query did not ask. */
const SEEDS_WITH_UNORDERED_ROWS = [1000, 1040, 1095, 1104]
const QUERY_PLANS = [
  'set enable_seqscan = off; set enable_hashagg = off; set enable_hashjoin = off',
  'set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = off; set enable_nestloop = off',
]

const reportsOf = (seeds: readonly number[], processes: number, settings?: WorkerSettings): Promise<Report[]> =>
  Array.fromAsync(
    runSeeds(
      seeds.map(seed => ({ seed })),
      processes,
      undefined,
      settings,
    ),
  )

let reports: Promise<readonly Report[]> | undefined
/** One report of each run of the usual engine, in any order. Its start takes as long as a dozen runs, so the cases share it. */
const usualReports = (): Promise<readonly Report[]> => {
  const seeds = [...Array.from({ length: SEEDS }, (_, index) => index + 1), ...SEEDS_WITH_UNORDERED_ROWS]
  return (reports ??= reportsOf([...seeds, ...REPEATED_SEEDS], PROCESSES))
}

/** SHA-256 of the history of the seed in each of its runs. */
const hashesIn = (actual: readonly Report[], seed: number): string[] =>
  actual.filter(report => report.seed === seed).map(({ hash }) => hash)

describe('the simulation', function () {
  this.timeout(MANY_MAX_MS)

  it(`keeps every promise under ${SEEDS} seeds`, async () => {
    const totals = new Map<string, number>()
    for (const { seed, failure, counts } of await usualReports()) {
      const broken = failure?.violations.map(({ promise, detail }) => `${promise}: ${detail}`) ?? []
      expect(broken.join('\n'), `npm run simulate -- --seeds 1 --from ${seed}`).to.equal('')
      for (const [name, count] of counts) totals.set(name, (totals.get(name) ?? 0) + count)
    }
    const absent = neverHappened(totals).filter(fault => SEEDS === SEEDS_MAX || !isRare(fault))
    expect(absent, 'a fault that never happens is a defect of the simulation').to.deep.equal([])
    expect([...totals.keys()]).to.include.members([
      'create_payment 201',
      'create_payment 202',
      'refund_payment 200',
      'delete_export 204',
    ])
  })

  it('produces the same history for the same seed, byte for byte', async () => {
    const actual = await usualReports()
    for (const seed of REPEATED_SEEDS) {
      const hashes = hashesIn(actual, seed)
      expect(hashes, `runs of seed ${seed}`).to.have.length.above(1)
      expect(new Set(hashes).size, `seed ${seed}`).to.equal(1)
    }
  })

  it('has the same history under other query plans and with rows at other places', async () => {
    const usual = await usualReports()
    const others = await Promise.all(
      QUERY_PLANS.map(planner => reportsOf(SEEDS_WITH_UNORDERED_ROWS, 1, { statementsPerVacuum: 200, planner })),
    )
    for (const seed of SEEDS_WITH_UNORDERED_ROWS) {
      const hashes = [usual, ...others].flatMap(actual => hashesIn(actual, seed))
      expect(hashes, `runs of seed ${seed}`).to.have.length(1 + QUERY_PLANS.length)
      expect(new Set(hashes).size, `seed ${seed}`).to.equal(1)
    }
  })

  // These lines can be compared with those of another machine.
  after(async () => {
    const actual = await usualReports()
    for (const seed of new Set(REPEATED_SEEDS))
      process.stdout.write(`    history of seed ${seed}: ${hashesIn(actual, seed)[0]}\n`)
  })
})
