import { Command } from 'commander'
import { timeParameter } from '../../src/http/resources/commonSchemas.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { AnotherLog, checkLog, isMismatch, logIn, logOf } from '../../src/logIdentity/logIdentity.ts'
import { relationExists } from '../../src/schema/existingRelations.ts'
import { verifyFolder } from './evidence/folder.ts'
import { commandLine, interruptible } from './interruption.ts'
import { jsonOption, print, printJson } from './print.ts'
import { progressFor } from './progress.ts'
import { withStores } from './stores.ts'
import { booksCheck } from './verify/books.ts'
import { type Checked, nothingCompared, type Outcome, type Verified, type VerifyCheck } from './verify/check.ts'
import { evidenceCheck } from './verify/evidence.ts'
import { textsCheck } from './verify/texts.ts'

/** The tables in Postgres are made from the log in the event store. */
const logCheck: VerifyCheck = {
  name: 'log',
  run: async ({ store, database, world }) => {
    if (!(await relationExists(database.sql, 'log_identity')))
      return nothingCompared({ store }, 'No service has run on this database.')
    try {
      await checkLog({ store, database, world })
      if ((await logOf(database.sql)) === undefined)
        return nothingCompared({ store }, 'The tables in Postgres are not made from any log yet.')
      return { detail: `The tables are of the log ${await logIn(store)}.`, findings: [] }
    } catch (error) {
      if (!isMismatch(error)) throw error
      const kind = error instanceof AnotherLog ? 'another_log' : 'secret_lost'
      return { detail: 'The tables are not of this log.', findings: [{ kind, detail: error.message }] }
    }
  },
}

/** The checks of a running service or of the configured stores, in their order. */
const CHECKS: readonly VerifyCheck[] = [logCheck, booksCheck, evidenceCheck, textsCheck]

type Options = {
  readonly json: boolean
  readonly only?: string
  readonly key?: readonly string[]
  readonly heads?: string
  readonly asOf?: number
  readonly after?: string
}

const selected = (only: string | undefined): readonly VerifyCheck[] => {
  const checks = CHECKS.filter(({ name }) => only === undefined || only === name)
  if (checks.length > 0) return checks
  throw new StartupError(
    `There is no check ${JSON.stringify(only)}. Choose from ${CHECKS.map(({ name }) => name).join(', ')}.`,
  )
}

const runAll = async (checks: readonly VerifyCheck[], verified: Verified): Promise<readonly Checked[]> => {
  const outcomes: Checked[] = []
  for (const { name, run } of checks) {
    outcomes.push({ check: name, ...(await run(verified)) })
    verified.signal.throwIfAborted()
  }
  return outcomes
}

const wordOf = ({ findings, skipped }: Outcome): string => {
  if (findings.length > 0) return 'FINDING'
  return skipped === true ? '-' : 'ok'
}

/** `advice`: what to do about findings. */
const report = (outcomes: readonly Checked[], { json }: Options, advice?: string): void => {
  const isCompared = outcomes.some(({ skipped }) => skipped !== true)
  const isOk = isCompared && outcomes.every(({ findings }) => findings.length === 0)
  if (json) printJson({ ok: isOk, checks: outcomes })
  else printOutcomes(outcomes, isCompared, advice)
  process.exitCode = isOk ? 0 : 1
}

/** A check with one finding has its reason in its own line; the detail of the comparison would read like success. */
const linesOf = (outcome: Checked): readonly string[] => {
  const { check, detail, findings } = outcome
  const reasons = findings.map(({ kind, detail: reason }) => `${kind}: ${reason}`)
  const [first, ...others] = reasons.length === 0 ? [detail] : reasons
  return [`${wordOf(outcome)}  ${check}  ${first}`, ...others.map(reason => `   ${reason}`)]
}

const printOutcomes = (outcomes: readonly Checked[], isCompared: boolean, advice: string | undefined): void => {
  for (const line of outcomes.flatMap(linesOf)) print(line)
  const count = outcomes.reduce((sum, { findings }) => sum + findings.length, 0)
  if (count > 0 && advice !== undefined) print(advice)
  if (count > 0) print(`Not intact: ${count} ${count === 1 ? 'finding' : 'findings'}.`)
  else print(isCompared ? 'Intact.' : 'Nothing was compared.')
}

/** An export of evidence needs no service; without a folder the stores of the service are verified. */
const verify = (
  folder: string | undefined,
  { only, key, heads, asOf, json }: Options,
  texts: Verified['texts'],
  signal: AbortSignal,
) => {
  const startProgress = progressFor({ json })
  if (folder === undefined) {
    const checks = selected(only)
    return withStores('verify', ({ ledger: { store, world }, database, config }) =>
      runAll(checks, { store, world, database, config, startProgress, texts, signal }),
    )
  }
  return verifyFolder({ folder, keys: key, heads, asOfMs: asOf, startProgress, signal })
}

const NEXT_FOR_FOLDER =
  'Keep this folder as it is. Where the service runs, npm run -s ledger -- verify compares the log itself with the signed heads, and ' +
  'npm run -s ledger -- export --evidence --out FOLDER makes a new export: if both are intact, only this copy was changed.'

const timeFrom = (text: string): number => {
  const time = timeParameter.safeParse(text).data
  if (time === undefined)
    throw new StartupError(`${text} is not a date and time with a time zone, such as 2026-01-31T12:00:00Z.`)
  return Date.parse(time)
}

export const verifyCommand = new Command('verify')
  .description('Compares the log with everything that is made from it, or an export of evidence with its proofs.')
  .argument('[folder]', 'an export of evidence, which is verified without any service')
  .option('--only <check>', `without a folder: only this check: ${CHECKS.map(({ name }) => name).join(', ')}`)
  .option(
    '--key <file>',
    'with a folder: a public key that may have signed the heads, again for each one after a change of the key',
    (file: string, before: readonly string[] | undefined) => [...(before ?? []), file],
  )
  .option('--heads <file>', 'with a folder and --key: heads from elsewhere, with which the events must agree')
  .option(
    '--as-of <time>',
    'with --heads: the time of the export, as you know it (RFC 3339); heads that were signed later may be beyond its end',
    timeFrom,
  )
  .option(
    '--after <id>',
    'with --only texts: begin after the row with this id, where an interrupted run has ended; earlier rows are not counted',
  )
  .addOption(jsonOption('print JSON: {ok, checks: [{check, detail, counts?, findings: [{kind, detail, place?}]}]}'))
  .addHelpText(
    'after',
    '\nChanges nothing. The last line is the verdict: Intact, Not intact, or Nothing was compared. Each difference is named with its place: edited, missing, reordered, truncated, surplus, text_lost. A check\n' +
      'that compared nothing although the log has events is a finding: not_compared. Progress is on stderr. Exit code 1 if\n' +
      'anything is found, or nothing was compared; 2 if anything could not be read.',
  )
  .action(async (folder: string | undefined, options: Options) => {
    if (options.after !== undefined && options.only !== textsCheck.name)
      throw new StartupError('--after goes with --only texts.')
    const texts = { after: options.after ?? '' }
    // The other checks have no place in which they could continue.
    const rest = ['verify', '--only', textsCheck.name, ...(options.json ? ['--json'] : []), '--after']
    const goOn = () =>
      commandLine(
        options.only === textsCheck.name && texts.after !== '' ? [...rest, texts.after] : process.argv.slice(2),
      )
    const outcomes = await interruptible(signal => verify(folder, options, texts, signal), goOn)
    if (outcomes !== undefined) report(outcomes, options, folder === undefined ? undefined : NEXT_FOR_FOLDER)
  })
