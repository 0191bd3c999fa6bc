import type { Database } from '../ports.ts'

/** Who asks for exports, in the words of the limits: tenant, subject and client. */
export type ExportCaller = { readonly tenant: string; readonly subject: string; readonly client: string }

/** An export that the read model has not heard of for so long was never accepted. */
const UNSEEN_MAX = '60 seconds'

const UNDER_WAY = `(o.state in ('pending', 'running') or (o.id is null and s.taken_at > now() - interval '${UNSEEN_MAX}'))`

/**
 * Takes a place among the exports that the caller may have under way at once; false when there is none. An export that is
 * accepted already needs no other place: asking again is no second export.
 */
export const takeExportSlot = (
  database: Database,
  { tenant, subject, client }: ExportCaller,
  id: string,
  atOnceMax: number,
): Promise<boolean> =>
  database.transaction(async sql => {
    const caller = JSON.stringify([tenant, subject, client])
    // One after the other, on all instances: two that count at once would both find the last place free.
    await sql('select pg_advisory_xact_lock(hashtextextended($1, 0))', [caller])
    const [known] = await sql('select 1 from operations_v1 where id = $1', [id])
    if (known) return true
    await sql(
      `delete from export_slots s where caller = $1 and not exists
        (select 1 from export_slots same left join operations_v1 o on o.id = same.operation_id
          where same.caller = s.caller and same.operation_id = s.operation_id and ${UNDER_WAY})`,
      [caller],
    )
    const [others] = await sql<{ count: bigint }>(
      'select count(*) as count from export_slots where caller = $1 and operation_id <> $2',
      [caller, id],
    )
    if (Number(others?.count ?? 0) >= atOnceMax) return false
    await sql('insert into export_slots (caller, operation_id) values ($1, $2) on conflict do nothing', [caller, id])
    return true
  })
