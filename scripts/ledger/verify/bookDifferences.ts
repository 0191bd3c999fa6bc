import { books } from '../../../projections/index.ts'
import type { Sql } from '../../../src/ports.ts'
import type { Finding } from './check.ts'

/** Differences are shown up to this many per table; the others are counted. */
const SHOWN_MAX = 20

type Compared = { readonly table: string; readonly key: readonly string[] }

const { entries, postings, accounts, balances, customers, closings } = books.tables

/** Every row is compared: one of a position that the books have not reached is served too. */
const COMPARED: readonly Compared[] = [
  { table: entries.name, key: ['position'] },
  { table: postings.name, key: ['position', 'line'] },
  { table: accounts.name, key: ['tenant_id', 'code'] },
  { table: balances.name, key: ['tenant_id', 'account', 'position'] },
  { table: closings.name, key: ['position'] },
]

type Texts = Readonly<Record<string, string | null>>
type Difference = {
  readonly stored: Texts | null
  readonly derived: Texts | null
  readonly event_id: string | null
  readonly count: bigint
}

const texts = (row: string): string => `(select json_object_agg(key, value) from json_each_text(row_to_json(${row})))`

const differencesOf = ({ table, key }: Compared, live: string): string => `
  with stored as (select * from "${live}".${table}), derived as (select * from ${table}),
  differing as (
    select ${key.join(', ')}, stored, derived, coalesce(stored.position, derived.position) as at_position
      from stored full join derived using (${key.join(', ')}) where stored::text is distinct from derived::text)
  select ${texts('stored')} as stored, ${texts('derived')} as derived, count(*) over () as count,
      coalesce((select event_id from ${entries.name} e where e.position = at_position),
        (select event_id from "${live}".${entries.name} e where e.position = at_position)) as event_id
    from differing order by ${key.join(', ')} limit ${SHOWN_MAX}`

/** One finding per column that differs, or one for a row that only one side has. */
const findingsOf = ({ table, key }: Compared, { stored, derived, event_id }: Difference): readonly Finding[] => {
  const row = stored ?? derived ?? {}
  const place = { table, ...Object.fromEntries(key.map(name => [name, row[name] ?? null])), event_id }
  const of = `${table}, ${key.map(name => `${name} ${row[name]}`).join(', ')}`
  const by = event_id === null ? 'no event' : `event ${event_id}`
  if (derived === null)
    return [{ kind: 'surplus', detail: `${of}: the row is in the books, and not in the log.`, place }]
  if (stored === null) return [{ kind: 'missing', detail: `${of}: the books lack the row that ${by} makes.`, place }]
  return Object.keys(stored)
    .filter(column => stored[column] !== derived[column])
    .map(column => ({
      kind: 'wrong_value',
      detail: `${of}: ${column} is ${stored[column]}, by the log ${derived[column]} (${by}).`,
      place: { ...place, column, stored: stored[column] ?? null, derived: derived[column] ?? null },
    }))
}

const customersOf = (live: string): string => `
  select id, l.customer_reference as stored, d.customer_reference as derived, l.id is null as is_missing
    from ${customers.name} d left join "${live}".${customers.name} l using (id)
    where starts_with(id, 'inv_') and (l.id is null or l.customer_reference is distinct from d.customer_reference)
    order by id limit ${SHOWN_MAX}`

const differingCustomers = async (sql: Sql, live: string): Promise<readonly Finding[]> => {
  const rows = await sql<{ id: string; stored: string | null; derived: string | null; is_missing: boolean }>(
    customersOf(live),
  )
  return rows.map(({ id, stored, derived, is_missing }) => ({
    kind: is_missing ? 'missing' : 'wrong_value',
    detail: `${customers.name}, id ${id}: customer_reference is ${is_missing ? 'not there' : stored}, by the log ${derived}.`,
    place: { table: customers.name, id, column: 'customer_reference', stored, derived },
  }))
}

/** `live`: the schema of the live tables. */
export const differencesInBooks = async (sql: Sql, live: string): Promise<readonly Finding[]> => {
  const findings: Finding[] = []
  for (const compared of COMPARED) {
    const rows = await sql<Difference>(differencesOf(compared, live))
    findings.push(...rows.flatMap(row => findingsOf(compared, row)))
    const hidden = Number(rows[0]?.count ?? 0n) - rows.length
    if (hidden > 0)
      findings.push({
        kind: 'more',
        detail: `${compared.table}: ${hidden} more rows differ.`,
        place: { table: compared.table },
      })
  }
  return [...findings, ...(await differingCustomers(sql, live))]
}
