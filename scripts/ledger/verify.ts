import { Command } from 'commander'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { StartupError } from '../../src/startupError.ts'
import { findConnections, howToStart } from './connections.ts'
import { print, printJson } from './print.ts'
import { progressFor } from './progress.ts'
import type { Outcome, Verified, VerifyCheck } from './verify/check.ts'
import { logCheck } from './verify/log.ts'

/** `verify`: compares the log, and everything that is made from it, and prints each difference with its place. */

/** The checks of a running service or of the configured stores, in their order. */
const CHECKS: readonly VerifyCheck[] = [logCheck]

type Options = { readonly json: boolean; readonly only?: string }
type Checked = Outcome & { readonly check: string }

const interrupted = (): StartupError =>
  new StartupError('Interrupted. Nothing was changed; from the beginning: npm run ledger -- verify')

const selected = (only: string | undefined): readonly VerifyCheck[] => {
  const checks = CHECKS.filter(({ name }) => only === undefined || only === name)
  if (checks.length > 0) return checks
  throw new StartupError(`There is no check ${JSON.stringify(only)}: ${CHECKS.map(({ name }) => name).join(', ')}.`)
}

/** Opens the stores of the running service, or the configured ones, while `work` runs. Ctrl-C aborts its signal. */
const withStores = async <T>({ json }: Options, work: (verified: Verified) => Promise<T>): Promise<T> => {
  const { config, addresses } = await findConnections()
  const { event_store, postgres } = addresses
  if (event_store === null || postgres === null) throw new StartupError(howToStart(config.dataDir))
  const store = openEventStore({ connectionString: event_store })
  const database = openDatabase({ connectionString: postgres, applicationName: 'ledger-verify' })
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  process.once('SIGINT', abort)
  try {
    return await work({ store, database, config, startProgress: progressFor({ json }), signal: stop.signal })
  } catch (error) {
    throw stop.signal.aborted ? interrupted() : error
  } finally {
    process.removeListener('SIGINT', abort)
    await Promise.all([store.close(), database.close()])
  }
}

const runAll = async (checks: readonly VerifyCheck[], verified: Verified): Promise<readonly Checked[]> => {
  const outcomes: Checked[] = []
  for (const { name, run } of checks) {
    outcomes.push({ check: name, ...(await run(verified)) })
    if (verified.signal.aborted) throw interrupted()
  }
  return outcomes
}

const wordOf = ({ findings, skipped }: Outcome): string => {
  if (findings.length > 0) return 'FINDING'
  return skipped === true ? '-' : 'ok'
}

const report = (outcomes: readonly Checked[], { json }: Options): void => {
  const isOk = outcomes.every(({ findings }) => findings.length === 0)
  if (json) printJson({ ok: isOk, checks: outcomes })
  else
    for (const outcome of outcomes) {
      print(`${wordOf(outcome)}  ${outcome.check}  ${outcome.detail}`)
      for (const { kind, detail } of outcome.findings) print(`   ${kind}: ${detail}`)
    }
  process.exitCode = isOk ? 0 : 1
}

export const verifyCommand = new Command('verify')
  .description('Compares the log with everything that is made from it, and names each difference with its place.')
  .option('--only <check>', `only this check: ${CHECKS.map(({ name }) => name).join(', ')}`)
  .option('--json', 'print JSON: {ok, checks: [{check, detail, counts?, findings: [{kind, detail, place?}]}]}', false)
  .addHelpText(
    'after',
    '\nChanges nothing. Progress is on stderr. Exit code 1 if anything is found, or could not be read.',
  )
  .action(async (options: Options) => {
    const checks = selected(options.only)
    report(await withStores(options, verified => runAll(checks, verified)), options)
  })
