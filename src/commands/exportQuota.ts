import type { Database, Sql } from '../ports.ts'
import { LOCK_NAMES } from '../schema/locks.ts'

/** The quotas of exports: unfinished ones of a caller and of its tenant, and the bytes of the stored files of a tenant. */

/** The caller that the limit of exports counts: tenant, subject and client. */
export type ExportCaller = { readonly tenant: string; readonly subject: string; readonly client: string }

/** An export that the read model does not show after this time is taken for one that was never accepted. */
const UNSEEN_MAX = '60 seconds'

const UNDER_WAY = `(o.state in ('pending', 'running') or (o.id is null and s.taken_at > now() - interval '${UNSEEN_MAX}'))`

export type ExportLimits = {
  readonly callerMax: number
  readonly tenantMax: number
  readonly tenantMaxBytes: number
  /** Files of exports before this time are deleted: RFC 3339. */
  readonly keptSince: string
}
export type ExportReservation = 'taken' | 'caller' | 'tenant' | 'bytes'

const forgetEnded = (sql: Sql, tenant: string): Promise<unknown> =>
  sql(
    `delete from export_slots s where tenant_id = $1 and not exists
      (select 1 from export_slots same left join operations_v1 o on o.id = same.operation_id
        where same.caller = s.caller and same.operation_id = s.operation_id and ${UNDER_WAY})`,
    [tenant],
  )

const storedBytes = async (sql: Sql, tenant: string, keptSince: string): Promise<bigint> => {
  const [stored] = await sql<{ bytes: bigint }>(
    `select coalesce(sum(byte_count), 0)::bigint as bytes from operations_v1
      where tenant_id = $1 and created_at >= $2 and state = 'succeeded'`,
    [tenant, keptSince],
  )
  return stored?.bytes ?? 0n
}

/**
 * Reserves one of the exports that the caller and its tenant may run at once, or returns the limit that is reached. A
 * repeated request for an accepted export needs no other reservation. The size of an export is known when it is done,
 * so the exports under way may exceed the bytes.
 */
export const takeExportSlot = (
  database: Database,
  { tenant, subject, client }: ExportCaller,
  id: string,
  limits: ExportLimits,
): Promise<ExportReservation> =>
  database.transaction(async sql => {
    const caller = JSON.stringify([tenant, subject, client])
    // The advisory lock serializes reservations on all instances; otherwise two that count at once would both find the
    // last one free.
    await sql('select pg_advisory_xact_lock(hashtextextended($1, 0))', [LOCK_NAMES.exportsOf(tenant)])
    const [known] = await sql('select 1 from operations_v1 where id = $1', [id])
    if (known) return 'taken'
    await forgetEnded(sql, tenant)
    const [others] = await sql<{ own: bigint; all: bigint }>(
      `select count(*) filter (where caller = $1) as own, count(*) as all from export_slots
        where tenant_id = $2 and operation_id <> $3`,
      [caller, tenant, id],
    )
    if (Number(others?.own ?? 0) >= limits.callerMax) return 'caller'
    if (Number(others?.all ?? 0) >= limits.tenantMax) return 'tenant'
    if ((await storedBytes(sql, tenant, limits.keptSince)) >= BigInt(limits.tenantMaxBytes)) return 'bytes'
    await sql('insert into export_slots (caller, operation_id, tenant_id) values ($1, $2, $3) on conflict do nothing', [
      caller,
      id,
      tenant,
    ])
    return 'taken'
  })
