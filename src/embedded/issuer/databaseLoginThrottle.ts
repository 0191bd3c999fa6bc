import type { Database, Sql } from '../../ports.ts'
import { createTables } from '../../schema/tables.ts'
import {
  type Attempt,
  keysOf,
  type LoginThrottle,
  PER_ADDRESS_MAX,
  PER_USER_MAX,
  WINDOW_SECONDS,
} from './loginThrottle.ts'
import { fingerprintOf } from './records.ts'

/** The limits of failed logins, counted in Postgres. */

/**
 * The count including this attempt. The row stays locked until the transaction ends, so attempts are counted one
 * by one.
 */
const COUNT = `insert into issuer_login_failures_v1 as known (fingerprint, failures, ends_at)
  values ($1, 1, now() + make_interval(secs => $2))
  on conflict (fingerprint) do update set
    failures = case when known.ends_at <= now() then 1 else known.failures + 1 end,
    ends_at = case when known.ends_at <= now() then excluded.ends_at else known.ends_at end
  returning failures, greatest(1, ceil(extract(epoch from ends_at - now())))::float8 as seconds`
const FORGET = 'delete from issuer_login_failures_v1 where fingerprint = $1'
const GIVE_BACK = 'update issuer_login_failures_v1 set failures = greatest(0, failures - 1) where fingerprint = $1'
const SWEEP = `delete from issuer_login_failures_v1 where fingerprint in
  (select fingerprint from issuer_login_failures_v1 where ends_at <= now() limit 1000 for update skip locked)`
const SWEEP_EVERY_MS = 60_000

type Counted = { readonly failures: number; readonly seconds: number }

/** Rolls back the transaction of a refused attempt, so it is not counted. */
class TooMany extends Error {
  readonly seconds: number

  constructor(seconds: number) {
    super('There were too many attempts.')
    this.name = 'TooMany'
    this.seconds = seconds
  }
}

/** The row of the address is always locked first: transactions that lock rows in the same order cannot deadlock. */
const countBoth = async (sql: Sql, attempt: Attempt): Promise<void> => {
  const { user, address } = keysOf(attempt)
  const full: Counted[] = []
  for (const [key, max] of [
    [address, PER_ADDRESS_MAX],
    [user, PER_USER_MAX],
  ] as const) {
    const [counted] = await sql<Counted>(COUNT, [fingerprintOf(key), WINDOW_SECONDS])
    if (counted && counted.failures > max) full.push(counted)
  }
  if (full.length > 0) throw new TooMany(Math.max(...full.map(({ seconds }) => seconds)))
}

/**
 * Counts for all instances in Postgres. No window is evicted before its end, however many other names are tried.
 * Rejects with the database's error, since without the database there is no login either.
 */
export const openDatabaseLoginThrottle = async (database: Database): Promise<LoginThrottle> => {
  await createTables(database, 'issuerLoginFailures')
  let sweptAtMs = Number.NEGATIVE_INFINITY

  /** In the background; a failed sweep is repeated by the next one. */
  const sweep = (): void => {
    if (performance.now() - sweptAtMs < SWEEP_EVERY_MS) return
    sweptAtMs = performance.now()
    void database.sql(SWEEP).catch(() => undefined)
  }

  return {
    begin: async attempt => {
      sweep()
      try {
        await database.transaction(sql => countBoth(sql, attempt))
        return undefined
      } catch (error) {
        if (error instanceof TooMany) return error.seconds
        throw error
      }
    },
    succeed: async attempt => {
      const { user, address } = keysOf(attempt)
      await database.transaction(async sql => {
        await sql(GIVE_BACK, [fingerprintOf(address)])
        await sql(FORGET, [fingerprintOf(user)])
      })
    },
  }
}
