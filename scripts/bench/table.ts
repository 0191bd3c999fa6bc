import type { Goal, Row } from './measure.ts'

/** The printed table of the benchmarks. */

const COLUMNS = ['measure', 'ours', 'reference', 'ratio', 'goal', 'met?'] as const

const figure = (value: number, unit: string): string =>
  `${value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 1 : 0 })} ${unit}`

const goalText = (goal: Goal | undefined): string => {
  if (goal === undefined) return '–'
  return 'atLeast' in goal ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`
}

const cellsOf = ({ measure, ours, reference, unit, ratio, goal, met }: Row): string[] => [
  measure,
  figure(ours, unit),
  figure(reference, unit),
  ratio.toFixed(2),
  goalText(goal),
  met === undefined ? '–' : met ? 'yes' : 'NO',
]

/** The table, followed by an explanation of each row. */
export const tableOf = (rows: readonly Row[]): string => {
  const cells = [[...COLUMNS], ...rows.map(cellsOf)]
  const widths = COLUMNS.map((_, column) => Math.max(...cells.map(line => line[column]?.length ?? 0)))
  const padded = cells.map(line =>
    line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))),
  )
  const notes = rows.flatMap(({ measure, note }) => (note === undefined ? [] : [`  ${measure}: ${note}`]))
  return [...padded.map(line => line.join('  ')), '', ...notes].join('\n')
}
