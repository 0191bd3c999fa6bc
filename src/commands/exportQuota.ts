import type { Database } from '../ports.ts'
import { LOCK_NAMES } from '../schema/locks.ts'

/** The quota of unfinished exports of a caller. */

/** The caller that the limit of exports counts: tenant, subject and client. */
export type ExportCaller = { readonly tenant: string; readonly subject: string; readonly client: string }

/** An export that the read model does not show after this time is taken for one that was never accepted. */
const UNSEEN_MAX = '60 seconds'

const UNDER_WAY = `(o.state in ('pending', 'running') or (o.id is null and s.taken_at > now() - interval '${UNSEEN_MAX}'))`

/**
 * Reserves one of the exports that the caller may run at once; false when the limit is reached. A repeated request for
 * an accepted export needs no other reservation.
 */
export const takeExportSlot = (
  database: Database,
  { tenant, subject, client }: ExportCaller,
  id: string,
  atOnceMax: number,
): Promise<boolean> =>
  database.transaction(async sql => {
    const caller = JSON.stringify([tenant, subject, client])
    // The advisory lock serializes reservations on all instances; otherwise two that count at once would both find the
    // last one free.
    await sql('select pg_advisory_xact_lock(hashtextextended($1, 0))', [LOCK_NAMES.exportsOf(caller)])
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
