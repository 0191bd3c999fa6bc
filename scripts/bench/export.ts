import { projections } from '../../projections/index.ts'
import { csv } from '../../src/adapters/files/csv.ts'
import { jsonl } from '../../src/adapters/files/jsonl.ts'
import { parquet } from '../../src/adapters/files/parquet.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { deleteFile } from '../../src/processes/exports/exportFiles.ts'
import type { Database } from '../../src/ports.ts'
import { exportedReadModels } from '../../src/processes/exports/exportedReadModels.ts'
import { writeExportFile } from '../../src/processes/exports/writeFile.ts'
import { WrongAnswers } from './answers.ts'
import { noDeadLetters, openTables } from './feedRuns.ts'
import { type Measure, rowOf } from './measure.ts'

const AGAINST_COPY = { atLeast: 0.3 }
const GROWTH = { atMost: 1.2 }
/** With the payments of the full form, a million rows. */
const ROWS_PER_PAYMENT = 50
const ROWS_AT_ONCE = 100_000
const SAMPLE_MS = 50
const MIB = 1024 * 1024

const TENANT = 'export'
const OPERATION = 'op_bench'
const { name: TABLE } = projections.payments
const { rows: rowsOf } = exportedReadModels.payments

/** Rows as the projector writes them, with ids and references that are as long as real ones and in no order. */
const INSERT = `
  insert into ${TABLE}
  select 'pay_' || upper(substr(md5(n::text), 1, 26)), $1, 'succeeded', 1, at, at, 'svc-' || n % 100,
    'inv_' || upper(substr(md5((n / 20)::text), 1, 26)), 'ord_' || upper(substr(md5((n / 20)::text), 2, 26)),
    100 + n % 1000, 'USD', 'bench ' || n, 'immediate', null, 0, '{"cart":"b, \\"quoted\\""}'
  from (select n, timestamptz '2026-01-01' + n * interval '10 ms' as at from generate_series($2::int, $3::int) n) made`

const fill = async ({ sql }: Database, count: number): Promise<void> => {
  await sql(`truncate ${TABLE}`)
  for (let from = 1; from <= count; from += ROWS_AT_ONCE)
    await sql(INSERT, [TENANT, from, Math.min(count, from + ROWS_AT_ONCE - 1)])
  await sql(`vacuum analyze ${TABLE}`)
}

/** The highest resident memory in each half of the time, in MiB. */
const watchMemory = () => {
  const samples: number[] = []
  const timer = setInterval(() => samples.push(process.memoryUsage.rss() / MIB), SAMPLE_MS)
  return (): { readonly early: number; readonly late: number } => {
    clearInterval(timer)
    const middle = Math.ceil(samples.length / 2)
    return { early: Math.max(...samples.slice(0, middle)), late: Math.max(...samples.slice(middle)) }
  }
}

type Exported = { readonly seconds: number; readonly growth: number; readonly lateMib: number }

const exportAll = async (database: Database, count: number, attempt: number): Promise<Exported> => {
  const store = { ...noDeadLetters, append: () => Promise.reject(new Error('An export appends nothing.')) }
  const ledger = createLedger({ ...store, ...unused }, realWorld())
  const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const dependencies = { database, ledger, formats: { csv, jsonl, parquet }, logger }
  const terms = { resource: 'payments', format: 'csv', filters: {}, expires_at: '2030-01-01T00:00:00.000Z' } as const
  const memory = watchMemory()
  const begun = performance.now()
  const written = await writeExportFile(
    dependencies,
    { id: OPERATION, attempt, tenant: TENANT, terms },
    new AbortController().signal,
  )
  const seconds = (performance.now() - begun) / 1000
  const { early, late } = memory()
  if (written.row_count !== count) throw new WrongAnswers([`${count} rows were due, and ${written.row_count} written.`])
  await deleteFile(database.sql, OPERATION)
  return { seconds, growth: late / early, lateMib: late }
}

const unused = {
  subscribe: () => {
    throw new Error('An export reads a read model.')
  },
  head: () => Promise.reject(new Error('An export reads a read model.')),
  close: () => Promise.resolve(),
}

/** The query of the export with its values in the text, since COPY has no parameters. */
const copyAll = async ({ sql }: Database): Promise<number> => {
  const [row] = await sql<{ data_directory: string }>('show data_directory')
  const { text, values } = rowsOf({ tenant: TENANT, filters: {} })
  const query = text.replaceAll(/\$(\d+)/g, (_, number: string) => `'${String(values[Number(number) - 1])}'`)
  const begun = performance.now()
  await sql(`copy (${query}) to '${row?.data_directory}/bench-export.csv' with (format csv, header)`)
  return (performance.now() - begun) / 1000
}

const run: Measure['run'] = async (harness, size) => {
  const database = await openTables(await harness.stores())
  const count = size.payments * ROWS_PER_PAYMENT
  try {
    harness.log(`making ${count} rows to export`)
    await fill(database, count)
    const copies: number[] = []
    const exports: Exported[] = []
    while (exports.length < size.rounds) {
      harness.log(`export ${exports.length + 1} of ${size.rounds}`)
      copies.push(count / (await copyAll(database)))
      exports.push(await exportAll(database, count, exports.length + 1))
    }
    const ours = exports.map(({ seconds }) => count / seconds)
    const note = `${count} payments as CSV, stored and hashed, against COPY of the same query to a file of the server`
    const memoryNote = `the highest resident memory of the second half against the first; at the end ${Math.max(
      ...exports.map(({ lateMib }) => lateMib),
    ).toFixed(0)} MiB, the benchmark included`
    return {
      rows: [
        rowOf({ measure: 'export', ours, reference: copies, unit: '/s', goal: AGAINST_COPY, note }),
        rowOf({
          measure: 'export, growth of memory',
          ours: exports.map(({ growth }) => growth),
          unit: '×',
          goal: GROWTH,
          note: memoryNote,
        }),
      ],
    }
  } finally {
    await database.sql(`truncate ${TABLE}`).catch(() => undefined)
    await database.close()
  }
}

export const exporting: Measure = {
  name: 'export',
  description:
    'An export of fifty rows for each payment of the log (a million in the full form) as CSV into the database, with its hash, ' +
    'against COPY of the same query to a file of the server; and the memory of both halves.',
  run,
}
