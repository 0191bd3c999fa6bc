import type { Query } from '../../projections/listQueries.ts'
import type { Database } from '../../src/ports.ts'

type PlanStep = {
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanStep[]
}
type Explained = { readonly 'QUERY PLAN': readonly { readonly Plan: PlanStep }[] }

/** The rows that each step reads from the table, with those that its filter removes. */
const rowsOfSteps = (step: PlanStep, table: string): number[] => {
  const perLoop = step['Actual Rows'] + (step['Rows Removed by Filter'] ?? 0)
  const own = step['Relation Name'] === table ? [perLoop * step['Actual Loops']] : []
  return [...own, ...(step.Plans ?? []).flatMap(inner => rowsOfSteps(inner, table))]
}

/** The largest number of rows of the table that one step of the statement reads. Throws if no step reads any. */
export const rowsRead = async (
  { sql }: Database,
  { text, values }: Query<object>,
  table = 'facts_v1',
): Promise<number> => {
  const [row] = await sql<Explained>(`explain (analyze, format json) ${text}`, values)
  const rows = (row?.['QUERY PLAN'] ?? []).flatMap(({ Plan: plan }) => rowsOfSteps(plan, table))
  if (rows.length === 0) throw new Error(`No step of the plan reads ${table}.`)
  return Math.max(...rows)
}
