import { projections, READ_MODEL_TABLES as TABLES } from '../../projections/index.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import { readModels } from '../../src/feeds/readModels.ts'
import { WrongAnswers } from './answers.ts'
import type { Database } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { noDeadLetters, openTables, runUntilCaughtUp } from './feedRuns.ts'
import type { StoreAddresses } from './harness.ts'
import { historyOn } from './paymentLog.ts'
import { type Measure, rowOf } from './measure.ts'

const AGAINST_COPY = { atLeast: 0.25 }
const EVENTS_PER_SECOND = { atLeast: 30_000 }

const empty = async ({ sql }: Database): Promise<void> => {
  await sql(`truncate ${TABLES.join(', ')}, checkpoints`)
}

/** The projector, as a part of the service runs it. */
export const feedsOf = (database: Database) => {
  const store = { ...noDeadLetters, append: () => Promise.reject(new Error('A rebuild parks nothing.')) }
  const feed = projectorOf({ database, store, world: realWorld() }, readModels, (name, error) => {
    throw new Error(`The read model ${name} was left behind.`, { cause: error })
  })
  return [feed]
}

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

/** The number of rows of each table and a checksum of their contents, which does not depend on their order. */
const contentsOf = async ({ sql }: Database): Promise<Map<string, string>> => {
  const contents = new Map<string, string>()
  for (const table of TABLES) {
    const text = `select count(*) || ' rows, checksum ' || coalesce(sum(hashtextextended(t::text, 0)), 0) as contents from ${table} t`
    const [row] = await sql<{ contents: string }>(text)
    contents.set(table, row?.contents ?? '')
  }
  return contents
}

/** Throws if the tables of the two sides differ, or if they do not hold the payments of the log. */
const checkContents = (copied: Map<string, string>, rebuilt: Map<string, string>, payments: number): void => {
  const expected = `${payments} rows`
  const differences = TABLES.filter(table => copied.get(table) !== rebuilt.get(table)).map(
    table => `${table} has ${copied.get(table)} when it is copied and ${rebuilt.get(table)} when it is rebuilt.`,
  )
  const content = rebuilt.get(projections.payments.name) ?? ''
  if (!content.startsWith(expected)) differences.push(`The log has ${payments} payments, the read model ${content}.`)
  if (differences.length > 0) throw new WrongAnswers(differences)
}

const roundOf = async (addresses: StoreAddresses, database: Database, payments: number) => {
  const files = await filesOf(database)
  await empty(database)
  const ours = await runUntilCaughtUp(addresses, database, feedsOf(database))
  const rebuilt = await contentsOf(database)
  await copyAll(database, 'to', files)
  await empty(database)
  const copy = await copyAll(database, 'from', files)
  checkContents(await contentsOf(database), rebuilt, payments)
  return { ours, copy }
}

const run: Measure['run'] = async (harness, size) => {
  const addresses = await harness.stores()
  const { projected, payments } = await historyOn(harness, size.payments)
  const database = await openTables(addresses)
  try {
    const rounds: Awaited<ReturnType<typeof roundOf>>[] = []
    while (rounds.length < size.rounds) {
      harness.log(`rebuild ${rounds.length + 1} of ${size.rounds}`)
      rounds.push(await roundOf(addresses, database, payments))
    }
    const ours = rounds.map(round => projected / round.ours)
    const measure = `projection rebuild, ${projected} events`
    const note = `orders, invoices, payments and facts from position zero, against COPY of the same rows from files of the server`
    const reference = rounds.map(round => projected / round.copy)
    return {
      rows: [
        rowOf({ measure, ours, reference, unit: '/s', goal: AGAINST_COPY, note }),
        rowOf({ measure: 'projection rebuild, absolute', ours, unit: '/s', goal: EVENTS_PER_SECOND }),
      ],
    }
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
