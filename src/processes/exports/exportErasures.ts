import type { ExportResource } from '../../../streams/operation/index.ts'
import type { Sql } from '../../ports.ts'
import type { Attempt } from './exportFiles.ts'
import { erasedCount, type PersonalKind } from '../../personalTexts/personalTexts.ts'

/**
 * A file may have an erased text if the tenant has more erased ones of its kind than at the file's snapshot. It is
 * expired then, whether it has the text or not.
 */

/** The kind of personal text in the files of each resource. */
const KINDS: Readonly<Partial<Record<ExportResource, PersonalKind>>> = {
  orders: 'customer_reference',
  payments: 'payment_reference',
}

type Exported = { readonly tenant: string; readonly resource: ExportResource }

/** To be read in the snapshot of the file; zero for a resource without personal texts. */
export const erasedBefore = async (sql: Sql, { tenant, resource }: Exported): Promise<bigint> => {
  const kind = KINDS[resource]
  return kind === undefined ? 0n : erasedCount(sql, tenant, kind)
}

/** Keeps the count of the file. Without it a file counts as one from before every erasure. */
export const keepErasedBefore = async (sql: Sql, { id, attempt }: Attempt, erased: bigint): Promise<void> => {
  await sql(
    `insert into export_erasures (operation_id, attempt, erased) values ($1, $2, $3) on conflict (operation_id)
      do update set attempt = excluded.attempt, erased = excluded.erased
      where export_erasures.attempt <= excluded.attempt`,
    [id, attempt, erased],
  )
}

/** Whether the file may have an erased text. Without a statement for a resource that has no personal texts. */
export const mayHaveErased = async (
  sql: Sql,
  { id, attempt, tenant, resource }: Attempt & Exported,
): Promise<boolean> => {
  const kind = KINDS[resource]
  if (kind === undefined) return false
  const [row] = await sql<{ outdated: boolean }>(
    `select (select count(*) from personal_texts where kind = $3 and tenant_id = $4 and erased_at is not null)
      > coalesce((select erased from export_erasures where operation_id = $1 and attempt = $2), 0) as outdated`,
    [id, attempt, kind, tenant],
  )
  return row?.outdated === true
}

const RESOURCE_OF_KIND = Object.entries(KINDS)
  .map(([resource, kind]) => `when '${kind}' then '${resource}'`)
  .join(' ')

/** At most `limit` finished exports whose files may have an erased text, or whose filters have one. */
export const exportsWithErased = async (sql: Sql, limit: number): Promise<readonly string[]> => {
  const rows = await sql<{ id: string }>(
    `select o.id from
      (select tenant_id, kind, count(*) as erased from personal_texts where erased_at is not null
        group by tenant_id, kind) p
      join operations_v1 o on o.tenant_id = p.tenant_id and o.state = 'succeeded'
        and o.resource = case p.kind ${RESOURCE_OF_KIND} end
      left join export_erasures e on e.operation_id = o.id and e.attempt = o.attempt
      where p.erased > coalesce(e.erased, 0)
        or exists (select from personal_texts t where t.token = o.filters->>'reference' and t.erased_at is not null)
      order by o.id limit $1`,
    [limit],
  )
  return rows.map(({ id }) => id)
}
