import type { QueryResultRow } from 'pg'
import type { Columns } from './projection.ts'

/** Queries of lists: filters, order, and pages that examine a bounded number of rows. */

export type Query<_Row extends QueryResultRow = QueryResultRow> = {
  readonly text: string
  readonly values: readonly unknown[]
}

/** The end of a page: the sort key of its last row, or of the last row that was examined for it. */
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
 * A state stands in the text of the statement, because the index of the unusual states (table.sql) is considered
 * only for a state that is known when the statement is planned.
 */
const WORD = /^[a-z_]+$/

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

/**
 * A page examines at most this many rows, in the order of the list. With filters that match few rows a page may hold
 * fewer items than its limit, even none; the next page begins after the rows that were examined.
 */
export const EXAMINED_MAX = 2_000

/** A row of a page. A page without items that is not the last one has one row, in which only `cut` has a value. */
export type PageRow<R extends QueryResultRow, K = PageKey> = R & {
  readonly is_found: true | null
  /** The key of the last examined row if there may be more rows after it, and the page is not full. */
  readonly cut: K | null
}

type Examined = {
  /** Selects the rows in `order`, by an index that has this order and holds no other rows. */
  readonly rows: string
  readonly order: string
  /** SQL for the key of a row, as JSON. */
  readonly key: string
  /** Conditions on rows that were examined. */
  readonly where: readonly string[]
  readonly limit: string
}

/**
 * The text of a page. `details` selects the members of its items from `page`. Rows are read one at a time until the page
 * is full, so only pages with filters that match little examine as many as they may.
 */
export const pageText = (
  { rows, order, key, where, limit }: Examined,
  details: string,
  detailsOrder: string,
): string => `with looked as materialized (${rows} order by ${order} limit ${EXAMINED_MAX}),
    page as materialized (select * from looked where ${['true', ...where].join(' and ')} order by ${order} limit ${limit})
  select items.*, cut.key as cut from (select count(*) as items from page) found
    left join lateral (select ${key} as key from looked where found.items < ${limit}
      order by ${order} offset ${EXAMINED_MAX - 1} limit 1) cut on true
    left join lateral (select true as is_found, details.* from (${details}) details) items on true
    where items.is_found or cut.key is not null order by ${detailsOrder}`

/** The items of a page, and the key after which the next page begins; undefined when there is none. */
export const pageOfRows = <R extends QueryResultRow, K>(
  rows: readonly PageRow<R, K>[],
  /** One less than the limit of the query. */
  limit: number,
  keyOf: (row: R) => K,
): { readonly items: readonly R[]; readonly next: K | undefined } => {
  const matches: R[] = rows.flatMap(({ cut: _, is_found, ...row }) => (is_found ? [row as never] : []))
  const items = matches.slice(0, limit)
  const last = items.at(-1)
  return { items, next: matches.length > limit && last ? keyOf(last) : (rows[0]?.cut ?? undefined) }
}

/** The filters that have an index of their own: `(tenant_id, <column>, created_at, id)`. */
export type PageIndexes = {
  /** The one with the fewest rows first. */
  readonly columns?: readonly string[]
  /** The state that the index of states leaves out; without it there is no such index. */
  readonly usualState?: string
}

const indexedFilter = (filters: Filters, { columns = [], usualState }: PageIndexes): string | undefined =>
  columns.find(name => filters[name] !== undefined) ??
  (usualState !== undefined && filters['state'] !== undefined && filters['state'] !== usualState ? 'state' : undefined)

type Range = { readonly where: readonly string[]; readonly order: string }
type Bind = (value: unknown) => string

/** The rows of the tenant, by the index that each list has. A cursor is never after `created_before`, which it replaces. */
const rangeOfTenant = ({ filters, after }: PageRequest, bind: Bind): Range => {
  const { created_after, created_before } = filters
  const where = ['tenant_id = $1']
  if (created_after !== undefined) where.push(`created_at > ${bind(created_after)}::timestamptz`)
  if (after) where.push(`(created_at, id) < (${bind(after.created_at)}::timestamptz, ${bind(after.id)})`)
  else if (created_before !== undefined) where.push(`created_at < ${bind(created_before)}::timestamptz`)
  return { where, order: 'created_at desc, id desc' }
}

/**
 * The rows of the tenant with a value of the column, by its index. Each bound is one of rows of values, and the order
 * begins with the tenant, because only this index has that order: with `tenant_id = …` Postgres may follow another index
 * and examine all rows of the tenant.
 */
const rangeOfColumn = (column: string, { filters, after }: PageRequest, bind: Bind): Range => {
  const { created_after, created_before } = filters
  const value = bind(filters[column])
  const end = bind(after?.created_at ?? created_before ?? 'infinity')
  return {
    where: [
      `(tenant_id, ${column}, created_at, id) < ($1, ${value}, ${end}::timestamptz, ${bind(after?.id ?? '')})`,
      created_after === undefined
        ? `(tenant_id, ${column}) >= ($1, ${value})`
        : `(tenant_id, ${column}, created_at) > ($1, ${value}, ${bind(created_after)}::timestamptz)`,
    ],
    order: `tenant_id desc, ${column} desc, created_at desc, id desc`,
  }
}

/** The condition of a partial index, which Postgres must find in the statement. */
const conditionOfIndex = (column: string, { usualState }: PageIndexes): string =>
  column === 'state' ? `state <> '${usualState}'` : `${column} is not null`

const rangeOf = (request: PageRequest, indexes: PageIndexes, bind: Bind): Range => {
  const column = indexedFilter(request.filters, indexes)
  if (column === undefined) return rangeOfTenant(request, bind)
  const { where, order } = rangeOfColumn(column, request, bind)
  return { where: [...where, conditionOfIndex(column, indexes)], order }
}

const KEY_OF_ROW = `json_build_object('created_at', created_at, 'id', id)`

/** Newest first, ties broken by id. The order never changes, and a page costs the same at any depth. */
export const pageOf = <R extends ListedRow>(
  projection: Listed<R>,
  request: PageRequest,
  indexes: PageIndexes = {},
): Query<PageRow<R>> => {
  const { where, values, bind } = conditionsOf(projection, request.tenant, request.filters)
  const range = rangeOf(request, indexes, bind)
  const { name, columns } = projection
  const compared = Object.keys(columns).filter(column => where.some(condition => condition.startsWith(`${column} `)))
  const members = [...new Set(['tenant_id', 'created_at', 'id', ...compared])]
  const rows = `select ${members.join(', ')} from ${name} where ${range.where.join(' and ')}`
  const details = `select listed.* from page cross join lateral (
    select ${Object.keys(columns).join(', ')} from ${name} where id = page.id offset 0) listed`
  const examined = { rows, order: range.order, key: KEY_OF_ROW, where, limit: bind(request.limit) }
  return { text: pageText(examined, details, 'created_at desc, id desc'), values }
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
