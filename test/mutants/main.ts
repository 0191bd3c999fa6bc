import { Command, InvalidArgumentError } from 'commander'
import { copyTree } from './treeCopy.ts'
import { type Mutant, mutants } from './mutants.ts'
import { limitOf, type Place, runStage, type Result, type Session } from './runStage.ts'
import { createStages, STAGES } from './stages.ts'
import { headOf, isCaught, isRunLost, jsonOf, reasonsOf, type Row, rowOf, titleOf, totalsOf } from './table.ts'

/** `npm run mutants`: plants each bug in a copy of the tree, and shows which tests notice and how soon. */

type Asked = {
  readonly seeds: number
  readonly only?: RegExp
  readonly without?: RegExp
  readonly stages?: readonly string[]
  readonly first?: true
  readonly why?: true
  readonly json?: true
}

const MISSED = 1
const FAILED = 2
const INTERRUPTED = 130

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const bugsOf = ({ only, without }: Asked): readonly Mutant[] =>
  mutants.filter(bug => (only?.test(titleOf(bug)) ?? true) && !(without?.test(titleOf(bug)) ?? false))

const showAll = async (asked: Asked, session: Session): Promise<readonly Row[]> => {
  const say = asked.json ? () => undefined : print
  const stages = createStages(session.copy, asked.seeds).filter(({ name }) => asked.stages?.includes(name) ?? true)
  const names = stages.map(({ name }) => name)
  const places: Place[] = []
  for (const stage of stages)
    places.push({ stage, limitMs: await limitOf(stage, session), clean: new Map<string, boolean>() })

  const play = async (bug: Mutant): Promise<Row> => {
    const results: Result[] = []
    for (const place of places)
      results.push(
        asked.first && isCaught({ results })
          ? { stage: place.stage.name, verdict: 'skipped', seconds: 0 }
          : await runStage(bug, place, session),
      )
    return { bug, results }
  }

  say(headOf(names))
  const rows: Row[] = []
  for (const bug of bugsOf(asked)) {
    const row = await play(bug)
    rows.push(row)
    say(rowOf(row))
    if (asked.why) for (const line of reasonsOf(row)) say(line)
  }
  for (const line of totalsOf(names, rows)) say(line)
  return rows
}

/** Interrupted at any time, it ends what it started, removes its copy and tells by its exit code that it is not whole. */
const main = async (asked: Asked): Promise<void> => {
  const stopping = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stopping.abort())
  const copy = await copyTree()
  try {
    const rows = await showAll(asked, { copy, signal: stopping.signal })
    if (asked.json) print(jsonOf(rows))
    process.exitCode = rows.every(row => isCaught(row) && !isRunLost(row)) ? 0 : MISSED
  } catch (error) {
    process.exitCode = stopping.signal.aborted ? INTERRUPTED : FAILED
    if (!stopping.signal.aborted) process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  } finally {
    await copy.remove()
  }
}

const number = (text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('A number above zero is needed.')
  return value
}

const stageNames = (text: string): readonly string[] => {
  const names = text.split(',')
  const unknown = names.filter(name => !STAGES.includes(name))
  if (unknown.length > 0) throw new InvalidArgumentError(`There is no stage ${unknown.join(', ')}.`)
  return names
}

const pattern = (text: string): RegExp => new RegExp(text)

await new Command('mutants')
  .description('Plants bugs one at a time in a copy of the tree and shows which tests notice.')
  .option('--seeds <count>', 'how many seeds the simulation runs for each', number, 200)
  .option('--only <pattern>', 'only bugs whose issue and name match', pattern)
  .option('--without <pattern>', 'only bugs whose issue and name do not match', pattern)
  .option('--stages <names>', `of ${STAGES.join(',')}: those to run`, stageNames)
  .option('--first', 'go on to the next bug as soon as a stage has caught one')
  .option('--why', 'show which test or seed failed, and how')
  .option('--json', 'the result as JSON')
  .action(main)
  .parseAsync()
