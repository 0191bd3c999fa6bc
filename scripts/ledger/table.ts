import { visible } from './print.ts'

const GAP = '  '

/** Columns as wide as their widest cell; the first to the left, the others to the side that is asked for. */
export const aligned = (
  texts: readonly (readonly string[])[],
  others: 'left' | 'right' = 'left',
): readonly string[] => {
  // As wide as it is shown: no cell may look like another line.
  const rows = texts.map(row => row.map(visible))
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const cell = (text: string, column: number): string => {
    const width = widths[column] ?? 0
    return column > 0 && others === 'right' ? text.padStart(width) : text.padEnd(width)
  }
  return rows.map(row => row.map(cell).join(GAP).trimEnd())
}
