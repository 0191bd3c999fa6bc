import type { Database } from '../../../src/ports.ts'
import { type Check, finding, ok } from './finding.ts'

/** The check of the clock of this machine against that of Postgres. */

const CHECK = 'clock'
/** Tokens are accepted with a leeway of 30 s; idempotency keys and leases go by the time of Postgres. */
const OFFSET_MAX_MS = 2_000
const MS_PER_SECOND = 1_000

/**
 * `offsetMs`: how far this machine's clock is ahead, known to `uncertaintyMs`, which is half of the time of the
 * question.
 */
export const clockCheck = (offsetMs: number, uncertaintyMs: number): Check => {
  const seconds = (Math.abs(offsetMs) / MS_PER_SECOND).toFixed(1)
  if (Math.abs(offsetMs) - uncertaintyMs <= OFFSET_MAX_MS)
    return ok(CHECK, `within ${OFFSET_MAX_MS / MS_PER_SECOND} s of the clock of Postgres`)
  return finding(
    CHECK,
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
