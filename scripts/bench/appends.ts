import { appendCost } from './appendCost.ts'
import { appendLoad } from './appendLoad.ts'
import { compareSides, latencyNote, type Measure, perSecond, rowOf } from './measure.ts'
import { singleInserts } from './pgbench.ts'

/** Benchmark: appends to the embedded event store against single-row inserts and against the client's own appends. */

const LANES = 64
const WARM_SECONDS = 2
const GOAL = { atLeast: 0.5 }

const run: Measure['run'] = async (harness, size) => {
  const { databaseUrl, eventStoreUrl } = await harness.stores()
  const inserts = await singleInserts(databaseUrl, harness.file('insert.sql'))
  const { side, check, close } = appendLoad(eventStoreUrl, LANES)
  try {
    await side(WARM_SECONDS)
    harness.log(`appends, ${LANES} in flight`)
    const sample = await compareSides(size, side, inserts.side)
    await check()
    const row = rowOf({
      measure: `append, ${LANES} in flight`,
      ours: sample.ours.map(perSecond),
      reference: sample.reference.map(perSecond),
      unit: '/s',
      goal: GOAL,
      note: `${latencyNote(sample.ours)}; against single-row inserts by ${inserts.by}, same Postgres server`,
    })
    const costs = await appendCost(harness, eventStoreUrl, LANES)
    return { rows: [row, costs] }
  } finally {
    await close()
  }
}

export const appends: Measure = {
  name: 'append',
  description:
    'Single events appended to new streams of the embedded event store through its adapter, 64 in flight, against ' +
    'single-row inserts by 64 clients of pgbench into the same Postgres server; and their CPU time in the process that ' +
    "appends, against the client's own appends.",
  run,
}
