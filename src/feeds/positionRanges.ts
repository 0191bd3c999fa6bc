import type { Sql } from '../ports.ts'

/** Few enough that a statement on them takes a tenth of its time limit. */
export const RANGE_MAX = 10_000

/**
 * Work on any number of rows in ranges of positions, within the time limit of a statement. `rows`: the part of a query
 * from the table's name on, with a condition on `values`. `work` gets the position before the range and its last one.
 */
export const inRanges = async (
  sql: Sql,
  { rows, values }: { readonly rows: string; readonly values: readonly unknown[] },
  work: (after: bigint, last: bigint) => Promise<unknown>,
  from = -1n,
): Promise<void> => {
  const range = `select position from ${rows} and position > $${values.length + 1} order by position limit ${RANGE_MAX}`
  for (let after = from; ; ) {
    const [row] = await sql<{ last: bigint | null }>(`select max(position) as last from (${range}) of`, [
      ...values,
      after,
    ])
    if (row?.last === null || row?.last === undefined) return
    await work(after, row.last)
    after = row.last
  }
}
