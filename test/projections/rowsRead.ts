import type { Query } from '../../projections/page.ts'
import type { Database } from '../../src/ports.ts'

type PlanStep = {
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanStep[]
}
type Explained = { readonly 'QUERY PLAN': readonly { readonly Plan: PlanStep }[] }

/** The rows that each step takes from the table of facts. Those that its filter removes were read too. */
const rowsOfSteps = (step: PlanStep): number[] => {
  const perLoop = step['Actual Rows'] + (step['Rows Removed by Filter'] ?? 0)
  const own = step['Relation Name'] === 'facts_v1' ? [perLoop * step['Actual Loops']] : []
  return [...own, ...(step.Plans ?? []).flatMap(rowsOfSteps)]
}

/** How many rows of the table of facts one step of the statement reads at most. */
export const rowsRead = async ({ sql }: Database, { text, values }: Query<object>): Promise<number> => {
  const [row] = await sql<Explained>(`explain (analyze, format json) ${text}`, values)
  return Math.max(...(row?.['QUERY PLAN'] ?? []).flatMap(({ Plan: plan }) => rowsOfSteps(plan)))
}
