import type { Mutant } from './mutant.ts'
import type { Result, Verdict } from './runStage.ts'
import { RECORDED_RUNS } from './stages.ts'

/** The results of planted bugs, as a table and as JSON. */

export type Row = { readonly bug: Mutant; readonly results: readonly Result[] }

const NAME_COLUMN = 78
const STAGE_COLUMN = 15

const SYMBOLS_OF_NOT_RUN: Partial<Record<Verdict, string>> = { 'not loaded': '-', skipped: '.' }

const isCaughtBy = ({ verdict }: Result): boolean => verdict === 'caught' || verdict === 'hung'

export const isCaught = ({ results }: Pick<Row, 'results'>): boolean => results.some(isCaughtBy)

/** The runs that are recorded for this bug (bugs.ts) pass with it: other runs must be found. */
export const hasOutdatedRun = ({ results }: Pick<Row, 'results'>): boolean =>
  results.some(
    ({ stage, verdict }) =>
      stage === RECORDED_RUNS && verdict !== 'caught' && SYMBOLS_OF_NOT_RUN[verdict] === undefined,
  )

const warningOf = (row: Row): string =>
  isCaught(row) ? (hasOutdatedRun(row) ? '  ITS RECORDED RUNS NO LONGER FAIL' : '') : '  NOT CAUGHT'

const cellOf = ({ verdict, seconds }: Result): string =>
  SYMBOLS_OF_NOT_RUN[verdict] ?? `${verdict} ${seconds.toFixed(0)} s`

const lineOf = (name: string, cells: readonly string[]): string =>
  [name.padEnd(NAME_COLUMN), ...cells.map(cell => cell.padEnd(STAGE_COLUMN))].join('').trimEnd()

export const titleOf = ({ issue, name }: Mutant): string => [issue, name].filter(Boolean).join(' ')

export const headerOf = (stages: readonly string[]): string => lineOf('bug', stages)

export const rowOf = (row: Row): string => `${lineOf(titleOf(row.bug), row.results.map(cellOf))}${warningOf(row)}`

export const reasonsOf = ({ results }: Row): readonly string[] =>
  results.flatMap(({ stage, by }) => (by === undefined ? [] : [`    ${stage}: ${by}`]))

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

const totalOf = (stage: string, rows: readonly Row[]): string => {
  const results = rows.flatMap(row => row.results.filter(result => result.stage === stage))
  const executed = results.filter(({ verdict }) => SYMBOLS_OF_NOT_RUN[verdict] === undefined)
  const catches = executed.filter(isCaughtBy)
  const alone = rows.filter(
    row => isCaught(row) && row.results.filter(isCaughtBy).every(result => result.stage === stage),
  )
  const middle = median(catches.map(({ seconds }) => seconds)).toFixed(0)
  return `${stage.padEnd(STAGE_COLUMN)}caught ${catches.length} of ${executed.length} (${alone.length} by no other stage), median ${middle} s`
}

export const totalsOf = (stages: readonly string[], rows: readonly Row[]): readonly string[] => {
  const caught = rows.filter(isCaught).length
  return [
    '',
    ...stages.map(stage => totalOf(stage, rows)),
    `${rows.length} bugs: ${caught} caught, ${rows.length - caught} missed, ${rows.filter(hasOutdatedRun).length} with recorded runs that no longer fail`,
    '(-: the stage has no test of this code; .: skipped, because an earlier stage caught the bug)',
  ]
}

export const jsonOf = (rows: readonly Row[]): string =>
  JSON.stringify({
    bugs: rows.map(row => ({
      bug: row.bug.name,
      issue: row.bug.issue,
      file: row.bug.file,
      caught: isCaught(row),
      results: row.results,
    })),
    missed: rows.filter(row => !isCaught(row)).length,
  })
