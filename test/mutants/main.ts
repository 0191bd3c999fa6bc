import { Command, InvalidArgumentError } from 'commander'
import { copyTree } from './treeCopy.ts'
import type { Mutant } from './mutant.ts'
import { mutants } from './mutants.ts'
import { timeLimitOf, type PreparedStage, runStage, type Result, type Session } from './runStage.ts'
import { createStages, STAGES } from './stages.ts'
import { headerOf, isCaught, hasOutdatedRun, jsonOf, reasonsOf, type Row, rowOf, titleOf, totalsOf } from './table.ts'

/** The command `npm run mutants`: plants known bugs in a copy of the code, one at a time, and shows which tests find each. */

type CommandOptions = {
  readonly seeds: number
  readonly only?: RegExp
  readonly without?: RegExp
  readonly stages?: readonly string[]
  readonly first?: true
  readonly why?: true
  readonly json?: true
}

const EXIT_MISSED = 1
const EXIT_FAILED = 2
const EXIT_INTERRUPTED = 130

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const bugsOf = ({ only, without }: CommandOptions): readonly Mutant[] =>
  mutants.filter(bug => (only?.test(titleOf(bug)) ?? true) && !(without?.test(titleOf(bug)) ?? false))

const runAll = async (options: CommandOptions, session: Session): Promise<readonly Row[]> => {
  const printLine = options.json ? () => undefined : print
  const stages = createStages(session.copy, options.seeds).filter(({ name }) => options.stages?.includes(name) ?? true)
  const names = stages.map(({ name }) => name)
  const prepared: PreparedStage[] = []
  for (const stage of stages)
    prepared.push({ stage, limitMs: await timeLimitOf(stage, session), cleanResults: new Map<string, boolean>() })

  const runBug = async (bug: Mutant): Promise<Row> => {
    const results: Result[] = []
    for (const one of prepared)
      results.push(
        options.first && isCaught({ results })
          ? { stage: one.stage.name, verdict: 'skipped', seconds: 0 }
          : await runStage(bug, one, session),
      )
    return { bug, results }
  }

  printLine(headerOf(names))
  const rows: Row[] = []
  for (const bug of bugsOf(options)) {
    const row = await runBug(bug)
    rows.push(row)
    printLine(rowOf(row))
    if (options.why) for (const line of reasonsOf(row)) printLine(line)
  }
  for (const line of totalsOf(names, rows)) printLine(line)
  return rows
}

/** An interrupted run ends the processes that it started, removes its copy and exits with a code of its own. */
const main = async (options: CommandOptions): Promise<void> => {
  const stopping = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stopping.abort())
  const copy = await copyTree()
  try {
    const rows = await runAll(options, { copy, signal: stopping.signal })
    if (options.json) print(jsonOf(rows))
    process.exitCode = rows.every(row => isCaught(row) && !hasOutdatedRun(row)) ? 0 : EXIT_MISSED
  } catch (error) {
    process.exitCode = stopping.signal.aborted ? EXIT_INTERRUPTED : EXIT_FAILED
    if (!stopping.signal.aborted) process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  } finally {
    await copy.remove()
  }
}

const positiveNumber = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above zero.')
  return value
}

const stageNames = (text: string): readonly string[] => {
  const names = text.split(',')
  const unknown = names.filter(name => !STAGES.includes(name))
  if (unknown.length > 0) throw new InvalidArgumentError(`No stage is called ${unknown.join(', ')}.`)
  return names
}

const pattern = (text: string): RegExp => new RegExp(text)

await new Command('npm run mutants --')
  .description('Plants known bugs in a copy of the code, one at a time, and shows which tests find each bug.')
  .option('--seeds <count>', 'number of simulation seeds to run for each bug', positiveNumber, 200)
  .option('--only <pattern>', 'run only bugs whose title (issue and name) matches this regular expression', pattern)
  .option('--without <pattern>', 'leave out bugs whose title (issue and name) matches this regular expression', pattern)
  .option('--stages <names>', `run only these kinds of tests, separated by commas, of: ${STAGES.join(',')}`, stageNames)
  .option('--first', 'continue with the next bug as soon as one stage has caught a bug')
  .option('--why', 'show for each stage the test or seed that failed, and its message')
  .option('--json', 'print the result as JSON')
  .action(main)
  .parseAsync()
