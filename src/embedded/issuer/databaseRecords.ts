import type { Database, Row } from '../../ports.ts'
import { createTables } from '../../schema/tables.ts'
import { fingerprintOf, type NewRecord, type Records } from './records.ts'
import { encrypt, decrypt } from './encryption.ts'

const SWEEP_EVERY_MS = 60_000

const INSERT = `insert into issuer_records_v1 as known (kind, fingerprint, grant_fingerprint, sealed, expires_at)
  values ($1, $2, $3, $4, now() + make_interval(secs => $5))
  on conflict (kind, fingerprint) do update set grant_fingerprint = excluded.grant_fingerprint,
    sealed = excluded.sealed, expires_at = excluded.expires_at`
/** Expired records do not exist, even before they are swept. */
const INSERT_IF_NEW = `${INSERT}, consumed_at = null where known.expires_at <= now() returning true as inserted`
const SELECT = `select sealed, extract(epoch from consumed_at)::int8 as consumed from issuer_records_v1
  where kind = $1 and fingerprint = $2 and expires_at > now()`
/** The row's lock lets one of several concurrent statements through; the others then find the record consumed. */
const CONSUME = `update issuer_records_v1 set consumed_at = now()
  where kind = $1 and fingerprint = $2 and consumed_at is null and expires_at > now() returning true as consumed`
const REMOVE = 'delete from issuer_records_v1 where kind = $1 and fingerprint = $2'
const REMOVE_OF_GRANT = 'delete from issuer_records_v1 where kind = $1 and grant_fingerprint = $2'
const SWEEP = 'delete from issuer_records_v1 where expires_at <= now()'

type StoredRow = Row & { readonly sealed: Buffer; readonly consumed: bigint | null }

const valuesOf = ({ kind, id, payload, lifetimeSeconds }: NewRecord): readonly unknown[] => [
  kind,
  fingerprintOf(id),
  payload.grantId === undefined ? null : fingerprintOf(payload.grantId),
  encrypt(id, payload),
  lifetimeSeconds,
]

/** Records in Postgres, which survive restarts. Throws the errors of the database. */
export const openDatabaseRecords = async (database: Database): Promise<Records> => {
  const { sql } = database
  await createTables(database, 'issuerRecords')
  let sweptAtMs = Number.NEGATIVE_INFINITY

  /**
   * Writes trigger the sweep, at most once per SWEEP_EVERY_MS, in the background; the next one repeats a failed one.
   */
  const sweep = (): void => {
    if (performance.now() - sweptAtMs < SWEEP_EVERY_MS) return
    sweptAtMs = performance.now()
    void sql(SWEEP).catch(() => undefined)
  }

  return {
    put: async record => {
      await sql(INSERT, valuesOf(record))
      sweep()
    },
    putIfNew: async record => {
      const inserted = await sql(INSERT_IF_NEW, valuesOf(record))
      sweep()
      return inserted.length > 0
    },
    get: async ({ kind, id }) => {
      const [row] = await sql<StoredRow>(SELECT, [kind, fingerprintOf(id)])
      if (!row) return undefined
      const consumed = row.consumed === null ? {} : { consumed: Number(row.consumed) }
      return { ...decrypt(id, row.sealed), ...consumed }
    },
    consume: async ({ kind, id }) => (await sql(CONSUME, [kind, fingerprintOf(id)])).length > 0,
    remove: async ({ kind, id }) => void (await sql(REMOVE, [kind, fingerprintOf(id)])),
    removeOfGrant: async (kind, grantId) => void (await sql(REMOVE_OF_GRANT, [kind, fingerprintOf(grantId)])),
  }
}
