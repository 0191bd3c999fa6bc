import type { QueryResultRow } from 'pg'
import type { Projection, ResourceRow } from './projection.ts'

/** One statement and its parameters, for whoever holds the connection. */
export type Query<_Row extends QueryResultRow = QueryResultRow> = {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Where a page ends: the sort key of its last row. */
export type PageKey = { readonly created_at: string; readonly id: string }

export type Filters = Readonly<Record<string, string | undefined>> & {
  readonly created_after?: string | undefined
  readonly created_before?: string | undefined
}

export type PageRequest = {
  readonly tenant: string
  readonly filters: Filters
  readonly after?: PageKey | undefined
  /** One more than the page holds tells whether there is more. */
  readonly limit: number
}

/** Newest first, ids breaking ties: the same order for ever, and a page costs the same at any depth. */
export const pageOf = <R extends ResourceRow>(
  projection: Pick<Projection<never, R>, 'name' | 'columns'>,
  { tenant, filters, after, limit }: PageRequest,
): Query<R> => {
  const values: unknown[] = [tenant]
  const bind = (value: unknown): string => `$${values.push(value)}`
  const where = ['tenant_id = $1', `state <> 'deleted'`]
  for (const [name, value] of Object.entries(filters)) {
    if (value === undefined) continue
    if (name === 'created_after') where.push(`created_at > ${bind(value)}::timestamptz`)
    else if (name === 'created_before') where.push(`created_at < ${bind(value)}::timestamptz`)
    else if (Object.hasOwn(projection.columns, name)) where.push(`${name} = ${bind(value)}`)
    else throw new Error(`${projection.name} has no column ${name} to filter by.`)
  }
  if (after) where.push(`(created_at, id) < (${bind(after.created_at)}::timestamptz, ${bind(after.id)})`)
  const text = `select ${Object.keys(projection.columns).join(', ')} from ${projection.name}
    where ${where.join(' and ')} order by created_at desc, id desc limit ${bind(limit)}`
  return { text, values }
}

export const byId = <R extends ResourceRow>(
  projection: Pick<Projection<never, R>, 'name' | 'columns'>,
  id: string,
): Query<R> => ({
  text: `select ${Object.keys(projection.columns).join(', ')} from ${projection.name} where id = $1`,
  values: [id],
})
