import type { Mutant } from './mutants.ts'
import type { Result, Verdict } from './runStage.ts'
import { NAMED_RUNS } from './stages.ts'

/** Results of planted bugs as lines that a person reads. */

export type Row = { readonly bug: Mutant; readonly results: readonly Result[] }

const NAME_COLUMN = 78
const STAGE_COLUMN = 15

const NOT_PLAYED: Partial<Record<Verdict, string>> = { untouched: '-', skipped: '.' }

const isCatch = ({ verdict }: Result): boolean => verdict === 'caught' || verdict === 'hung'

export const isCaught = ({ results }: Pick<Row, 'results'>): boolean => results.some(isCatch)

/** A run that is kept for this bug does not show it any more: another one is to be looked for. */
export const isRunLost = ({ results }: Pick<Row, 'results'>): boolean =>
  results.some(
    ({ stage, verdict }) => stage === NAMED_RUNS && verdict !== 'caught' && NOT_PLAYED[verdict] === undefined,
  )

const warningOf = (row: Row): string =>
  isCaught(row) ? (isRunLost(row) ? '  ITS NAMED RUN IS LOST' : '') : '  NOT CAUGHT'

const cellOf = ({ verdict, seconds }: Result): string => NOT_PLAYED[verdict] ?? `${verdict} ${seconds.toFixed(0)} s`

const lineOf = (name: string, cells: readonly string[]): string =>
  [name.padEnd(NAME_COLUMN), ...cells.map(cell => cell.padEnd(STAGE_COLUMN))].join('').trimEnd()

export const titleOf = ({ issue, name }: Mutant): string => [issue, name].filter(Boolean).join(' ')

export const headOf = (stages: readonly string[]): string => lineOf('bug', stages)

export const rowOf = (row: Row): string => `${lineOf(titleOf(row.bug), row.results.map(cellOf))}${warningOf(row)}`

export const reasonsOf = ({ results }: Row): readonly string[] =>
  results.flatMap(({ stage, by }) => (by === undefined ? [] : [`    ${stage}: ${by}`]))

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

const totalOf = (stage: string, rows: readonly Row[]): string => {
  const results = rows.flatMap(row => row.results.filter(result => result.stage === stage))
  const played = results.filter(({ verdict }) => NOT_PLAYED[verdict] === undefined)
  const catches = played.filter(isCatch)
  const alone = rows.filter(row => isCaught(row) && row.results.filter(isCatch).every(result => result.stage === stage))
  const middle = median(catches.map(({ seconds }) => seconds)).toFixed(0)
  return `${stage.padEnd(STAGE_COLUMN)}caught ${catches.length} of ${played.length} (${alone.length} alone), median ${middle} s`
}

export const totalsOf = (stages: readonly string[], rows: readonly Row[]): readonly string[] => {
  const caught = rows.filter(isCaught).length
  return [
    '',
    ...stages.map(stage => totalOf(stage, rows)),
    `${rows.length} bugs, ${caught} caught, ${rows.length - caught} missed, ${rows.filter(isRunLost).length} named runs lost`,
    '(-: nothing of the stage is about the code; .: an earlier stage had caught it)',
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
