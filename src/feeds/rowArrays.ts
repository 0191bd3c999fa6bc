import type { Columns, CopyRows, TableRows } from '../../projections/projection.ts'

/** One array per column: a batch of any size is one statement with one text. New rows are copied. */

export const arraysOf = (columns: Columns, rows: readonly object[]): unknown[][] =>
  Object.entries(columns).map(([name, type]) =>
    rows.map(row => {
      const value: unknown = (row as Record<string, unknown>)[name]
      return type === 'json' ? JSON.stringify(value) : value
    }),
  )

/** The insert of such rows; `first` is the number of the first parameter. */
export const insertOf = (name: string, columns: Columns, first = 1): string => {
  const arrays = Object.values(columns).map((type, index) => `$${index + first}::${type}[]`)
  return `insert into ${name} (${Object.keys(columns).join(', ')}) select * from unnest(${arrays.join(', ')})`
}

/** Fewer rows are inserted by a prepared statement, which they share with others. */
const COPIED_ROWS_MIN = 100

/** Copies the rows of the first table if they are many, and with them those of the others. False if they must be inserted. */
export const tryCopy = async (added: readonly TableRows[], copy?: CopyRows): Promise<boolean> => {
  const copied = (added[0]?.rows.length ?? 0) >= COPIED_ROWS_MIN ? copy?.(added) : undefined
  await copied
  return copied !== undefined
}
