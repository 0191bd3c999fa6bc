import type { QueryResultRow } from 'pg'
import type { Columns } from './projection.ts'

/** Queries of lists: filters, order, and pages by the sort key of their last row. */

/** One SQL statement and its parameters. */
export type Query<_Row extends QueryResultRow = QueryResultRow> = {
  readonly text: string
  readonly values: readonly unknown[]
}

/** The end of a page: the sort key of its last row. */
export type PageKey = { readonly created_at: string; readonly id: string }

export type Filters = Readonly<Record<string, string | undefined>> & {
  readonly created_after?: string | undefined
  readonly created_before?: string | undefined
}

export type PageRequest = {
  readonly tenant: string
  readonly filters: Filters
  readonly after?: PageKey | undefined
  /** One row more than the page holds tells whether there is another page. */
  readonly limit: number
}

/** Any table with a page key and a tenant: resources and event rows. */
export type ListedRow = PageKey & { readonly tenant_id: string }
type Listed<_R extends ListedRow> = { readonly name: string; readonly columns: Columns }

/** Filters that are a bound of a column. */
const BOUNDS: Readonly<Record<string, string>> = {
  created_after: 'created_at >',
  created_before: 'created_at <',
  expires_after: 'expires_at >',
  expires_until: 'expires_at <=',
}

/**
 * A state stands in the text of the statement, because the index of the unusual states (addedIndexes.sql) is considered
 * only for a state that is known when the statement is planned.
 */
const WORD = /^[a-z_]+$/

/** The condition for rows of the tenant that match the filters. */
const conditionsOf = <R extends ListedRow>({ name: table, columns }: Listed<R>, tenant: string, filters: Filters) => {
  const values: unknown[] = [tenant]
  const bind = (value: unknown): string => `$${values.push(value)}`
  const where = ['tenant_id = $1', ...(Object.hasOwn(columns, 'state') ? [`state <> 'deleted'`] : [])]
  for (const [name, value] of Object.entries(filters)) {
    if (value === undefined) continue
    const bound = BOUNDS[name]
    if (bound !== undefined) where.push(`${bound} ${bind(value)}::timestamptz`)
    else if (name === 'state' && WORD.test(value)) where.push(`state = '${value}'`)
    else if (Object.hasOwn(columns, name)) where.push(`${name} = ${bind(value)}`)
    else throw new Error(`${table} has no column ${name} to filter by.`)
  }
  return { where, values, bind }
}

const ORDER = 'order by created_at desc, id desc'

const selectOf = <R extends ListedRow>({ name, columns }: Listed<R>, where: readonly string[]): string =>
  `select ${Object.keys(columns).join(', ')} from ${name} where ${where.join(' and ')} ${ORDER}`

/** Newest first, ties broken by id. The order never changes, and a page costs the same at any depth. */
export const pageOf = <R extends ListedRow>(
  projection: Listed<R>,
  { tenant, filters, after, limit }: PageRequest,
): Query<R> => {
  const { where, values, bind } = conditionsOf(projection, tenant, filters)
  if (after) where.push(`(created_at, id) < (${bind(after.created_at)}::timestamptz, ${bind(after.id)})`)
  return { text: `${selectOf(projection, where)} limit ${bind(limit)}`, values }
}

/** All pages of the list as one statement. */
export const wholeOf = <R extends ListedRow>(
  projection: Listed<R>,
  { tenant, filters }: Pick<PageRequest, 'tenant' | 'filters'>,
): Query<R> => {
  const { where, values } = conditionsOf(projection, tenant, filters)
  return { text: selectOf(projection, where), values }
}

export const countOf = <R extends ListedRow>(
  projection: Listed<R>,
  { tenant, filters }: Pick<PageRequest, 'tenant' | 'filters'>,
): Query<{ count: bigint }> => {
  const { where, values } = conditionsOf(projection, tenant, filters)
  return { text: `select count(*) as count from ${projection.name} where ${where.join(' and ')}`, values }
}

export const byId = <R extends ListedRow>(projection: Listed<R>, id: string): Query<R> => ({
  text: `select ${Object.keys(projection.columns).join(', ')} from ${projection.name} where id = $1`,
  values: [id],
})
