import { journals, projections } from '../../projections/index.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import type { Database } from '../../src/ports.ts'
import { realWorld } from '../../src/clockAndRandomness.ts'
import { noDeadLetters, openTables, runUntilCaughtUp } from './feedRuns.ts'
import { historyOn } from './paymentLog.ts'
import { type Measure, rowOf } from './measure.ts'

/** Benchmark: a rebuild of the read models against COPY of the same rows. */

const ROUNDS = 2
const AGAINST_COPY = { atLeast: 0.25 }
const ABSOLUTE_PER_SECOND = 20_000

const TABLES = [...Object.values(projections), ...Object.values(journals)].map(({ name }) => name)

const empty = async ({ sql }: Database): Promise<void> => {
  await sql(`truncate ${TABLES.join(', ')}, checkpoints`)
}

const feedsOf = (database: Database) => [
  projectorOf({ database, store: noDeadLetters, world: realWorld() }, readModels, (name, error) => {
    throw new Error(`The read model ${name} was left behind.`, { cause: error })
  }),
]

/** The files are on the server's own disk, which is the fastest form of COPY. */
const filesOf = async ({ sql }: Database): Promise<Map<string, string>> => {
  const [row] = await sql<{ data_directory: string }>('show data_directory')
  return new Map(TABLES.map(table => [table, `${row?.data_directory}/bench-${table}.copy`]))
}

const copyAll = async ({ sql }: Database, direction: 'to' | 'from', files: Map<string, string>): Promise<number> => {
  const begun = performance.now()
  for (const [table, file] of files) await sql(`copy ${table} ${direction} '${file}'`)
  return (performance.now() - begun) / 1000
}

const run: Measure['run'] = async (harness, { payments }) => {
  const addresses = await harness.stores()
  const { projected } = await historyOn(harness, payments)
  const database = await openTables(addresses)
  try {
    let ours = 0
    let copied = 0
    const files = await filesOf(database)
    for (let round = 1; round <= ROUNDS; round++) {
      harness.log(`rebuild ${round} of ${ROUNDS}`)
      await empty(database)
      ours += await runUntilCaughtUp(addresses, database, feedsOf(database))
      await copyAll(database, 'to', files)
      await empty(database)
      copied += await copyAll(database, 'from', files)
    }
    const rate = (ROUNDS * projected) / ours
    const measure = `projection rebuild, ${projected} events`
    const note = `orders, invoices, payments and facts from position zero, against COPY of the same rows from files of the server`
    return [
      rowOf({ measure, ours: rate, reference: (ROUNDS * projected) / copied, unit: '/s', goal: AGAINST_COPY, note }),
      rowOf({
        measure: 'projection rebuild, absolute',
        ours: rate,
        reference: ABSOLUTE_PER_SECOND,
        unit: '/s',
        goal: { atLeast: 1 },
      }),
    ]
  } finally {
    await database.close()
  }
}

export const rebuild: Measure = {
  name: 'rebuild',
  description:
    "The projector's feeds from position zero into empty tables, over a log that the service's own commands made, against " +
    'COPY of the resulting rows into the same tables; counted in events of the projected categories.',
  run,
}
