import type { Columns, Goal, Row } from './measure.ts'
import type { Spread } from './statistics.ts'

/** The printed table of the benchmarks. */

const TITLES: Columns = { ours: 'ours', reference: 'reference' }
const NOTHING = '–'
const RATIO_DIGITS = 2

const figure = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 2 : value < 100 ? 1 : 0 })

const withRange = ({ median, min, max, rounds }: Spread, text: (value: number) => string, unit = ''): string =>
  rounds.length > 1 ? `${text(median)}${unit} (${text(min)}–${text(max)})` : `${text(median)}${unit}`

const goalText = (goal: Goal | undefined, unit: string): string => {
  if (goal === undefined) return NOTHING
  return 'atLeast' in goal ? `≥ ${figure(goal.atLeast)}${unit}` : `≤ ${figure(goal.atMost)}${unit}`
}

const cellsOf = ({ measure, ours, reference, unit, ratio, goal, met }: Row): string[] => [
  measure,
  withRange(ours, figure, ` ${unit}`),
  reference ? withRange(reference, figure, ` ${unit}`) : NOTHING,
  ratio ? withRange(ratio, value => value.toFixed(RATIO_DIGITS)) : NOTHING,
  goalText(goal, ratio ? '' : ` ${unit}`),
  met === undefined ? NOTHING : met ? 'yes' : 'NO',
]

/** The table with medians and their ranges, followed by an explanation of each row. */
export const tableOf = (rows: readonly Row[], { ours, reference }: Columns = TITLES): string => {
  const titles = ['measure', ours, reference, 'ratio', 'goal', 'met?']
  const cells = [titles, ...rows.map(cellsOf)]
  const widths = titles.map((_, column) => Math.max(...cells.map(line => line[column]?.length ?? 0)))
  const padded = cells.map(line =>
    line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))),
  )
  const notes = rows.flatMap(({ measure, note }) => (note === undefined ? [] : [`  ${measure}: ${note}`]))
  return [...padded.map(line => line.join('  ')), '', ...notes].join('\n')
}
