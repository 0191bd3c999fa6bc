import { projections } from '../../projections/index.ts'
import type { Sql } from '../ports.ts'
import type { PersonalToken } from './personalTexts.ts'

/**
 * References to personal texts that are not in the table, where every text leaves its row behind when it is erased: they were
 * lost, in a restore of Postgres from a dump that is older.
 */

/** The read models whose rows have a token, the member that has it, and the prefix of their ids. */
export const REFERRING = [
  { table: projections.orders.name, member: 'customer_reference', prefix: 'ord' },
  { table: projections.payments.name, member: 'reference', prefix: 'pay' },
] as const
export type Referring = (typeof REFERRING)[number]

/** The references in one page of rows, in the order of their ids. */
export type PageOfReferences = {
  /** The id of the last row; null where there is none. */
  readonly last: string | null
  readonly references: number
  readonly lost: number
  /** A row with a reference whose text was lost. */
  readonly example: string | null
  /** Of the rows with such a reference. */
  readonly tenants: readonly string[] | null
}

export const countLost = async (
  sql: Sql,
  { table, member }: Referring,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<PageOfReferences> => {
  const [page] = await sql<PageOfReferences>(
    `with page as (select id, tenant_id, ${member} as token from ${table} where id > $1 order by id limit $2),
      referring as (select id, tenant_id, exists (select 1 from personal_texts t where t.token = page.token
                    and t.tenant_id = page.tenant_id) as is_there from page where token is not null)
      select (select max(id) from page) as last, count(*)::integer as references,
        (count(*) filter (where not is_there))::integer as lost, min(id) filter (where not is_there) as example,
        array_agg(distinct tenant_id) filter (where not is_there) as tenants
      from referring`,
    [after, limit],
  )
  return page ?? { last: null, references: 0, lost: 0, example: null, tenants: null }
}

/** Some of the tenant's tokens whose text was lost, each once. */
export const lostTokens = async (sql: Sql, tenant: string, limit: number): Promise<readonly PersonalToken[]> => {
  const selects = REFERRING.map(
    ({ table, member }) =>
      `select ${member} as token from ${table} r where tenant_id = $1 and ${member} is not null
        and not exists (select 1 from personal_texts t where t.token = r.${member} and t.tenant_id = r.tenant_id)`,
  )
  const rows = await sql<{ token: PersonalToken }>(`${selects.join(' union ')} limit $2`, [tenant, limit])
  return rows.map(({ token }) => token)
}
