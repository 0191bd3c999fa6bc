const GAP = '  '

/** Columns as wide as their widest cell; the first to the left, the others to the side that is asked for. */
export const aligned = (rows: readonly (readonly string[])[], others: 'left' | 'right' = 'left'): readonly string[] => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const cell = (text: string, column: number): string => {
    const width = widths[column] ?? 0
    return column > 0 && others === 'right' ? text.padStart(width) : text.padEnd(width)
  }
  return rows.map(row => row.map(cell).join(GAP).trimEnd())
}
