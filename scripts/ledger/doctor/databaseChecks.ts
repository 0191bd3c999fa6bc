import { bytesText } from '../../../src/commands/quotas/byteQuota.ts'
import { tenantsAbove } from '../../../src/commands/quotas/tenantBytes.ts'
import { deadLetterSummary } from '../../../src/feeds/deadLetters.ts'
import type { Database } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { type Check, finding, ok } from './finding.ts'

/** Checks whether facts wait for an operator. */
export const checkDeadLetters = async ({ sql }: Database): Promise<Check> => {
  const check = 'dead letters'
  const keys = (await relationExists(sql, 'parked_facts')) ? await deadLetterSummary(sql) : []
  if (keys.length === 0) return ok(check, 'none')
  const since = keys.map(({ first_failed_at }) => first_failed_at).toSorted()[0]
  const many = keys.length === 1 ? '1 key waits' : `${keys.length} keys wait`
  return finding(
    check,
    `${many} with facts that could not be delivered, since ${since}.`,
    'See npm run ledger -- dead-letters list.',
  )
}

type FeedError = { readonly name: string; readonly error: string; readonly at: string }

/** Errors of feeds with their messages. The public /readyz says only which feeds have failed. */
export const checkErrors = async ({ sql }: Database): Promise<Check> => {
  const check = 'failed feeds'
  const isCreated = await relationExists(sql, 'feed_errors')
  const rows = isCreated ? await sql<FeedError>('select name, error, at from feed_errors order by name') : []
  if (rows.length === 0) return ok(check, 'none')
  const detail = rows.map(({ name, error, at }) => `${name}, since ${at}: ${error}`).join('; ')
  return finding(check, detail, 'Repair the named cause; the feed then continues by itself.')
}

const NEAR_SHARE = 0.8

/** Names the tenants that have used 80 % of their quota, which is before their commands are refused. */
export const checkTenantBytes = async ({ sql }: Database, bytesPerDay: number): Promise<Check> => {
  const check = 'tenant storage'
  const isThere = await relationExists(sql, 'tenant_bytes')
  const near = isThere ? await tenantsAbove(sql, bytesPerDay * NEAR_SHARE) : []
  if (near.length === 0) return ok(check, `no tenant has used ${NEAR_SHARE * 100} % of ${bytesText(bytesPerDay)} today`)
  const named = near.map(({ tenant, bytes }) => `${tenant} ${bytesText(bytes)}`)
  return finding(
    check,
    `Stored today, of ${bytesText(bytesPerDay)} a day: ${named.join(', ')}.`,
    'New commands of a tenant are refused once its quota is exhausted, until 00:00 UTC: find out why it stores so much, or raise TENANT_BYTES_PER_DAY.',
  )
}

/** Tokens are accepted with a leeway of 30 s; idempotency keys and leases go by the time of Postgres. */
const OFFSET_MAX_MS = 2_000
const MS_PER_SECOND = 1_000

/** `offsetMs`: how far this machine is ahead, known to `uncertaintyMs`, half of the time of the question. */
export const clockCheck = (offsetMs: number, uncertaintyMs: number): Check => {
  const seconds = (Math.abs(offsetMs) / MS_PER_SECOND).toFixed(1)
  if (Math.abs(offsetMs) - uncertaintyMs <= OFFSET_MAX_MS)
    return ok('clock', `within ${OFFSET_MAX_MS / MS_PER_SECOND} s of the clock of Postgres`)
  return finding(
    'clock',
    `It is ${seconds} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the clock of Postgres.`,
    'Synchronise the clocks of all machines (NTP): tokens are refused early or late, and times of events are wrong.',
  )
}

export const checkClock = async ({ sql }: Database): Promise<Check> => {
  const before = Date.now()
  const [row] = await sql<{ now_ms: number }>(
    `select (extract(epoch from clock_timestamp()) * 1000)::double precision as now_ms`,
  )
  const after = Date.now()
  return clockCheck((before + after) / 2 - Number(row?.now_ms), (after - before) / 2)
}
