import type { Sql } from '../../ports.ts'
import { BUILDING_SCHEMA } from '../../schema/rebuildSchemas.ts'
import type { ComparedTable, Difference } from './requests.ts'

/**
 * Compares the live tables with the new ones as of one position: numbers of rows and checksums by tenant, and the first
 * difference.
 */

type TableShape = { readonly columns: readonly string[]; readonly key: readonly string[]; readonly hasTenant: boolean }

const shapeOf = async (sql: Sql, schema: string, table: string): Promise<TableShape> => {
  const columns = await sql<{ name: string; type: string; is_key: boolean }>(
    `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, coalesce(a.attnum = any(i.indkey), false) as is_key
      from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
      left join pg_index i on i.indrelid = c.oid and i.indisprimary
      where n.nspname = $1 and c.relname = $2 and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [schema, table],
  )
  return {
    columns: columns.map(({ name, type }) => `${name} ${type}`),
    key: columns.filter(({ is_key }) => is_key).map(({ name }) => name),
    hasTenant: columns.some(({ name }) => name === 'tenant_id'),
  }
}

/** A difference of the tables themselves: a read model whose table was changed or dropped. */
const differenceOfShapes = (table: string, live: TableShape, rebuilt: TableShape): Difference | undefined => {
  const of = ({ columns }: TableShape): string => (columns.length === 0 ? 'no such table' : columns.join(', '))
  if (of(live) === of(rebuilt)) return undefined
  return { table, key: null, tenant_id: null, column: null, live: of(live), rebuilt: of(rebuilt), rows: 0 }
}

type TenantSum = { readonly tenant: string; readonly rows: bigint; readonly checksum: string }

const sumsOf = (sql: Sql, from: string, { hasTenant }: TableShape): Promise<TenantSum[]> =>
  sql<TenantSum>(
    `select ${hasTenant ? 'tenant_id' : `''`} as tenant, count(*) as rows,
      sum(hashtextextended(t::text, 0)::numeric)::text as checksum from ${from} t group by 1 order by 1`,
  )

const joined = (sums: readonly TenantSum[]): string =>
  sums.map(({ tenant, rows, checksum }) => JSON.stringify([tenant, String(rows), checksum])).join()

type DifferingRow = {
  readonly key: string
  readonly tenant_id: string | null
  readonly live: Readonly<Record<string, string | null>> | null
  readonly rebuilt: Readonly<Record<string, string | null>> | null
  readonly differing: bigint
}

const texts = (row: string): string => `(select json_object_agg(key, value) from json_each_text(row_to_json(${row})))`

/** The first differing row by key. Rows are compared as texts, because not every type has an equality. */
const firstDifferingRow = (key: readonly string[], tenant: string, live: string, rebuilt: string): string => `
  select concat_ws(',', ${key.join(', ')}) as key, ${tenant} as tenant_id,
    ${texts('a')} as live, ${texts('b')} as rebuilt, count(*) over () as differing
  from ${live} a full join ${rebuilt} b using (${key.join(', ')})
  where a::text is distinct from b::text order by ${key.join(', ')} limit 1`

const SHOWN_MAX = 200
const shown = (value: string | null | undefined): string | null =>
  value === undefined || value === null ? null : value.length > SHOWN_MAX ? `${value.slice(0, SHOWN_MAX)}…` : value

const describe = (table: string, { key, tenant_id, live, rebuilt, differing }: DifferingRow): Difference => {
  const base = { table, key, tenant_id, rows: Number(differing) }
  if (live === null) return { ...base, column: null, live: null, rebuilt: 'a row' }
  if (rebuilt === null) return { ...base, column: null, live: 'a row', rebuilt: null }
  const column = Object.keys(live).find(name => live[name] !== rebuilt[name]) ?? null
  const of = (row: typeof live): string | null => (column === null ? null : shown(row[column]))
  return { ...base, column, live: of(live), rebuilt: of(rebuilt) }
}

export type Compared = { readonly tables: readonly ComparedTable[]; readonly difference: Difference | undefined }

const keyOf = (table: string, { key }: TableShape): readonly string[] => {
  if (key.length === 0) throw new Error(`${table} has no primary key, by which its rows could be compared.`)
  return key
}

const tenantOf = ({ hasTenant, key }: TableShape): string => {
  if (!hasTenant) return 'null::text'
  return key.includes('tenant_id') ? 'tenant_id' : 'coalesce(a.tenant_id, b.tenant_id)'
}

const compareTable = async (sql: Sql, schema: string, table: string) => {
  const [live, rebuilt] = [await shapeOf(sql, schema, table), await shapeOf(sql, BUILDING_SCHEMA, table)]
  const names = [`"${schema}".${table}`, `${BUILDING_SCHEMA}.${table}`] as const
  const built = await sumsOf(sql, names[1], rebuilt)
  const rows = built.reduce((sum, tenant) => sum + Number(tenant.rows), 0)
  const checksum = built.reduce((sum, tenant) => sum + BigInt(tenant.checksum), 0n)
  const sums = { table, tenants: built.length, rows, checksum: checksum.toString() }
  const shapes = differenceOfShapes(table, live, rebuilt)
  if (shapes !== undefined) return { sums, difference: shapes }
  if (joined(await sumsOf(sql, names[0], live)) === joined(built)) return { sums, difference: undefined }
  const [row] = await sql<DifferingRow>(firstDifferingRow(keyOf(table, live), tenantOf(live), ...names))
  return { sums, difference: row && describe(table, row) }
}

/** Reads all rows of the tables. `schema` is the live tables'. */
export const compareTables = async (sql: Sql, schema: string, tables: readonly string[]): Promise<Compared> => {
  const compared: ComparedTable[] = []
  let difference: Difference | undefined
  for (const table of tables) {
    const result = await compareTable(sql, schema, table)
    compared.push(result.sums)
    difference ??= result.difference
  }
  return { tables: compared, difference }
}

/**
 * Compares the rows written since a comparison, and the numbers of all. `since`: the oldest transaction in flight then.
 */
export const compareRecentRows = async (
  sql: Sql,
  schema: string,
  tables: readonly string[],
  since: string,
): Promise<Difference | undefined> => {
  for (const table of tables) {
    const shape = await shapeOf(sql, schema, table)
    const names = [`"${schema}".${table}`, `${BUILDING_SCHEMA}.${table}`] as const
    const [counts] = await sql<{ live: bigint; rebuilt: bigint }>(
      `select (select count(*) from ${names[0]}) as live, (select count(*) from ${names[1]}) as rebuilt`,
    )
    const key = keyOf(table, shape).join(', ')
    const recent = names
      .map(name => `select ${key} from ${name} where age(xmin) <= age('${since}'::xid)`)
      .join(' union ')
    const sources = names.map(name => `(select * from ${name} where (${key}) in (${recent}))`)
    const [row] = await sql<DifferingRow>(
      firstDifferingRow(keyOf(table, shape), tenantOf(shape), sources[0] ?? '', sources[1] ?? ''),
    )
    if (row !== undefined) return describe(table, row)
    if (counts?.live !== counts?.rebuilt)
      return {
        ...{ table, key: null, tenant_id: null, column: null, rows: 0 },
        live: `${counts?.live} rows`,
        rebuilt: `${counts?.rebuilt} rows`,
      }
  }
  return undefined
}
