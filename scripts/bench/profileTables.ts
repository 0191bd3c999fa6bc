import { POSTGRES_REPORTS_MS, type PostgresReading } from './postgresFigures.ts'
import type { PaymentFigures, StatementFigures, ThreadAllocations } from './profileFigures.ts'
import { SYSTEM_COUNTS } from './systemFigures.ts'

/** The printed tables of the figures of `--profile`. */

const STATEMENTS_SHOWN = 15
const TABLES_SHOWN = 12
const FUNCTIONS_SHOWN = 15
const TEXT_MAX_CHARS = 100
const NOTHING = '–'
/** Less often than once for two hundred payments. */
const RARE = 0.005

const figure = (value: number | null | undefined): string => {
  if (value === null || value === undefined) return NOTHING
  if (value !== 0 && Math.abs(value) < RARE) return '<0.01'
  return value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 })
}

/** The first column is aligned to the left, the others to the right. */
const aligned = (lines: readonly (readonly string[])[]): string[] => {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0)))
  return lines.map(line =>
    line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .replace(/^/, '  '),
  )
}

const threadLines = ({ threads }: PaymentFigures): string[] => {
  const kinds = ['minor', 'incremental', 'major']
  const titles = ['event loop', 'busy', 'delay p50', 'p99', 'max', ...kinds.map(kind => `${kind} collections`)]
  const rows = threads.map(({ name, utilization, delayMs: { p50, p99, max }, collections }) => [
    name,
    `${(100 * utilization).toFixed(1)} %`,
    ...[p50, p99, max].map(ms => `${ms.toFixed(1)} ms`),
    ...kinds.map(kind => {
      const { count, ms } = collections[kind] ?? { count: 0, ms: 0 }
      return `${count} in ${ms.toFixed(0)} ms`
    }),
  ])
  return aligned([titles, ...rows])
}

const systemLines = ({ system }: PaymentFigures): string[] => {
  const processes = Object.entries(system)
  if (processes.length === 0)
    return ['  No system calls, switches and faults: this system has no /proc, or no right to read it.']
  const titles = ['for each payment', ...processes.map(([name]) => name)]
  return aligned([titles, ...SYSTEM_COUNTS.map(count => [count, ...processes.map(([, each]) => figure(each[count]))])])
}

const callLines = ({ calls }: PaymentFigures): string[] => {
  const titles = ['gRPC', 'calls', 'messages sent', 'in writes', 'bytes', 'messages received', 'in chunks', 'bytes']
  const rows = Object.entries(calls).map(([path, each]) => [
    path,
    figure(each.calls),
    figure(each.messagesSent),
    figure(each.writes),
    figure(each.bytesSent),
    figure(each.messagesReceived),
    figure(each.chunksReceived),
    figure(each.bytesReceived),
  ])
  return aligned([titles, ...rows])
}

const shortened = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > TEXT_MAX_CHARS ? `${line.slice(0, TEXT_MAX_CHARS)}…` : line
}

const statementLines = ({ statements }: PaymentFigures): string[] => {
  const total = statements.reduce((sum, { calls }) => sum + calls, 0)
  const row = ({ calls, program, text, plan = [] }: StatementFigures): string[] => [
    `  ${figure(calls).padStart(6)}  ${program}  ${shortened(text)}`,
    ...(plan.length === 0 ? [] : [`${' '.repeat(10)}${plan.join(', ')}`]),
  ]
  return [
    `  SQL statements: ${figure(total)}, the most frequent of ${statements.length} texts with their generic plans`,
    ...statements.slice(0, STATEMENTS_SHOWN).flatMap(row),
  ]
}

const countsText = ({ server }: PostgresReading): string =>
  Object.entries(server)
    .map(([name, value]) => `${name} ${figure(value)}`)
    .join(', ')

const postgresLines = ({ postgres, postgresIdle }: PaymentFigures): string[] => {
  const titles = ['scans of tables', 'sequential', 'their rows', 'by index', 'their rows', 'rows written']
  const rows = postgres.tables
    .toSorted((a, b) => b.rowsOfSequentialScans - a.rowsOfSequentialScans || b.indexScans - a.indexScans)
    .slice(0, TABLES_SHOWN)
    .map(each => [
      each.table,
      figure(each.sequentialScans),
      figure(each.rowsOfSequentialScans),
      figure(each.indexScans),
      figure(each.rowsOfIndexScans),
      figure(each.rowsWritten),
    ])
  const idle = `  of this in ${POSTGRES_REPORTS_MS / 1000} idle seconds after the payments: ${countsText(postgresIdle)}`
  return [`  Postgres: ${countsText(postgres)}`, idle, '', ...aligned([titles, ...rows])]
}

const BYTES_PER_KB = 1000

const allocationLines = ({ allocations }: PaymentFigures): string[] => {
  const kilobytes = (bytes: number): string => `${(bytes / BYTES_PER_KB).toFixed(1).padStart(7)} kB`
  const [busiest] = allocations
  const ofThread = ({ name, bytes }: ThreadAllocations): string => `  ${kilobytes(bytes)}  ${name}`
  return [
    '  allocated on the JavaScript heap, from samples',
    ...allocations.map(ofThread),
    ...(busiest === undefined ? [] : [`  of this in ${busiest.name}`]),
    ...(busiest?.functions ?? []).slice(0, FUNCTIONS_SHOWN).map(({ name, bytes }) => `  ${kilobytes(bytes)}  ${name}`),
  ]
}

/** All figures of one number of connections, each for one payment where nothing else is said. */
export const figuresText = (title: string, figures: PaymentFigures): string =>
  [
    `${title}: ${figures.payments} payments in ${figures.seconds.toFixed(1)} s, until the feeds have processed them; each figure is for one payment`,
    ...[threadLines, systemLines, callLines, statementLines, postgresLines, allocationLines].flatMap(lines => [
      '',
      ...lines(figures),
    ]),
  ].join('\n')
