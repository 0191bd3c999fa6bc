import { Command } from 'commander'
import { StartupError } from '../../src/lib/startupError.ts'
import { type CallerOptions, tokensOf, withCaller } from './apiClient.ts'
import { createLedgerPayments } from './bankStatement/ledgerPayments.ts'
import { type Status, STATUSES } from './bankStatement/outcomes.ts'
import { reconcile } from './bankStatement/reconcile.ts'
import { openReport, type ReportRow, rowOf } from './bankStatement/report.ts'
import { openStatement, type StatementFile } from './bankStatement/statementFile.ts'
import { BANK_STATEMENT_HELP } from './bankStatement/helpText.ts'
import { findConnections, howToStart } from './connections.ts'
import { interruptible } from './interruption.ts'
import { jsonOption, print, printJson, printNotice } from './print.ts'
import { progressFor } from './progress.ts'
import { withLedger } from './stores.ts'
import { printTable } from './table.ts'

type Options = CallerOptions & { readonly report?: string; readonly dryRun: boolean }

type Result = {
  readonly counts: Record<Status, number>
  settledNow: number
  /** All rows for --json, else the first ones that are findings. */
  readonly rows: ReportRow[]
}

const SCOPES = ['payments:read', 'payments:settle']
const PRINTED_ROWS_MAX = 100
const NO_FINDINGS: ReadonlySet<string> = new Set<Status>(['matched', 'expected', 'ignored'])

const reportFor = async (file: StatementFile, path: string | undefined) => {
  if (path === undefined) return undefined
  if (await file.isAt(path))
    throw new StartupError(`${path} is the statement itself: choose another name for the report.`)
  return openReport(path)
}

const importFrom = async (file: StatementFile, options: Options, signal: AbortSignal): Promise<Result> => {
  const { config, addresses } = await findConnections()
  const { api } = addresses
  if (api === null) throw new StartupError(howToStart(config.dataDir))
  const head = await withLedger(({ store }) => store.head())
  const payments = createLedgerPayments({ api, head, token: await tokensOf(options, SCOPES), signal })
  const counts = Object.fromEntries(STATUSES.map(status => [status, 0])) as Record<Status, number>
  const result: Result = { counts, settledNow: 0, rows: [] }
  const report = await reportFor(file, options.report)
  const progress = progressFor(options)('bank statement', 'lines')
  try {
    const { dryRun, json } = options
    for await (const step of reconcile({ file, payments, dryRun, signal, onProgress: progress.update })) {
      const row = rowOf(step.outcome)
      counts[step.outcome.status] += 1
      if (step.settledNow) result.settledNow += 1
      await report?.write(row)
      if (json || (step.outcome.status !== 'matched' && result.rows.length < PRINTED_ROWS_MAX)) result.rows.push(row)
    }
    await report?.finish()
  } finally {
    progress.end()
    await report?.discard()
  }
  return result
}

const show = ({ counts, settledNow, rows }: Result, { dryRun, json }: Options): void => {
  if (json) return printJson({ dry_run: dryRun, settled_now: settledNow, counts, items: rows })
  printTable(Object.entries(counts).map(([status, count]) => [status, count]))
  const others = Object.entries(counts).reduce((sum, [status, count]) => sum + (status === 'matched' ? 0 : count), 0)
  if (others > 0) print()
  const header = ['line', 'status', 'booking_date', 'amount', 'currency', 'reference', 'detail'] as const
  if (others > 0) printTable([header, ...rows.map(row => header.map(name => row[name] ?? ''))])
  if (others > rows.length) print(`… and ${others - rows.length} more: --report FILE has all.`)
  printNotice(dryRun ? 'Nothing was settled: --dry-run.' : `${settledNow} payments were settled now.`)
}

const importStatement = async (path: string, options: Options): Promise<void> => {
  const file = await openStatement(path)
  try {
    const result = await interruptible(signal => importFrom(file, options, signal))
    if (result === undefined) return
    show(result, options)
    const isClean = Object.entries(result.counts).every(([status, count]) => count === 0 || NO_FINDINGS.has(status))
    if (!isClean) process.exitCode = 1
  } finally {
    await file.close()
  }
}

const bankStatementCommand = withCaller(new Command('bank-statement'), {
  scope: 'payments:settle',
  tenant: 'the tenant of the payments',
  subject: 'the subject of the settlements',
})
  .description('Settles the deferred payments that a bank statement has the money for, and reports all other lines.')
  .argument('<file>', 'the statement: camt.053 (XML), or CSV in the form below')
  .option('--report <file>', 'write the outcome of every line as CSV')
  .option('--dry-run', 'settle nothing; the report is the one that the import would give', false)
  .addOption(
    jsonOption(
      'print JSON: {dry_run, settled_now, counts: {matched, …}, items: [{line, status, booking_date, amount, currency, ' +
        'reference, payment_id, payment_amount, payment_currency, detail}]}',
    ),
  )
  .addHelpText('after', BANK_STATEMENT_HELP)
  .action(importStatement)

export const importCommand = new Command('import')
  .description('Imports files of other systems. The service must run.')
  .addCommand(bankStatementCommand)
