import { availableParallelism } from 'node:os'
import { expect } from 'chai'
import { neverHappened } from './faults.ts'
import { runSeeds } from './workerPool.ts'
import { hashOf } from './history.ts'
import { openEngine } from './postgres.ts'
import { simulate } from './simulate.ts'
import type { WorkerSettings } from './worker.ts'

const SEEDS = 500
/** Beyond the limit of .mocharc.json, which is that of one case: this one is hundreds of runs. */
const MANY_MAX_MS = 600_000

/** Their histories once depended on the order of rows for which a query did not ask. */
const SEEDS_WITH_UNORDERED_ROWS = [1000, 1040, 1095, 1104]
const QUERY_PLANS = [
  'set enable_seqscan = off; set enable_hashagg = off; set enable_hashjoin = off',
  'set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = off; set enable_nestloop = off',
]

/** SHA-256 of the history of each seed that has run, in any process. */
const histories = new Map<number, string>()

/** The hash of the history of each of these seeds, from one process whose engine has the settings. */
const hashesUnder = async (settings: WorkerSettings): Promise<ReadonlyMap<number, string>> => {
  const jobs = SEEDS_WITH_UNORDERED_ROWS.map(seed => ({ seed }))
  const hashes = new Map<number, string>()
  for await (const { seed, hash } of runSeeds(jobs, 1, undefined, settings)) hashes.set(seed, hash)
  return hashes
}

describe('the simulation', () => {
  it(`keeps every promise under ${SEEDS} seeds`, async function () {
    this.timeout(MANY_MAX_MS)
    const jobs = Array.from({ length: SEEDS }, (_, index) => ({ seed: index + 1 }))
    const totals = new Map<string, number>()
    for await (const { seed, failure, counts, hash } of runSeeds(jobs, availableParallelism())) {
      histories.set(seed, hash)
      const broken = failure?.violations.map(({ promise, detail }) => `${promise}: ${detail}`) ?? []
      expect(broken.join('\n'), `npm run simulate -- --seeds 1 --from ${seed}`).to.equal('')
      for (const [name, count] of counts) totals.set(name, (totals.get(name) ?? 0) + count)
    }
    expect(neverHappened(totals), 'a fault that never happens is a defect of the simulation').to.deep.equal([])
    expect([...totals.keys()]).to.include.members([
      'create_payment 201',
      'create_payment 202',
      'refund_payment 200',
      'delete_export 204',
    ])
  })

  it('produces the same history for the same seed, byte for byte', async () => {
    const engine = await openEngine()
    for (const seed of [42, 5, 42, 500]) {
      const { history } = await simulate(engine, { seed })
      const hash = hashOf(history.lines)
      expect(hash, `seed ${seed}`).to.equal(histories.get(seed) ?? hash)
      histories.set(seed, hash)
    }
  })

  it('has the same history under other query plans and with rows at other places', async () => {
    const others = QUERY_PLANS.map(planner => ({ statementsPerVacuum: 200, planner }))
    const actual = await Promise.all([{}, ...others].map(hashesUnder))
    for (const seed of SEEDS_WITH_UNORDERED_ROWS)
      expect(new Set(actual.map(hashes => hashes.get(seed))).size, `seed ${seed}`).to.equal(1)
    for (const hashes of actual) expect([...hashes.keys()]).to.have.members(SEEDS_WITH_UNORDERED_ROWS)
  })

  // These lines can be compared with those of another machine.
  after(() => {
    for (const seed of [5, 42, 500])
      if (histories.has(seed)) process.stdout.write(`    history of seed ${seed}: ${histories.get(seed)}\n`)
  })
})
