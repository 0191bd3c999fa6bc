import { escaped, print } from './print.ts'

const GAP = '  '

/** Pads columns to their widest cell; the first is aligned left, the others as given. */
export const aligned = (
  texts: readonly (readonly string[])[],
  others: 'left' | 'right' = 'left',
): readonly string[] => {
  // Escaped before measuring, so that no cell can imitate another line.
  const rows = texts.map(row => row.map(escaped))
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const cell = (text: string, column: number): string => {
    const width = widths[column] ?? 0
    return column > 0 && others === 'right' ? text.padStart(width) : text.padEnd(width)
  }
  return rows.map(row => row.map(cell).join(GAP).trimEnd())
}

export const printTable = (rows: readonly (readonly (string | number | bigint)[])[]): void => {
  for (const line of aligned(rows.map(cells => cells.map(String)))) print(line)
}
