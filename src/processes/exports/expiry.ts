import { timeNow } from '../../lib/time.ts'
import { nextToExpire } from '../../../projections/operations/queries.ts'
import type { Timer } from '../../feeds/timer.ts'
import { Unavailable } from '../../ports.ts'
import { createOneByOne } from './oneByOne.ts'
import type { ExportDependencies } from './writeFile.ts'

/** The read model has the times of exports; those of new requests come from the log, as it may not have them yet. */

const AT_ONCE_MAX = 100
/** The wait while a read model shows exports that have expired, or did not answer, is this long. */
const RETRY_MS = 2_000
/** The clock may be set, and a read model may be made again, so no wait is longer. */
const WAIT_MAX_MS = 30_000

export type Expiry = {
  /** Notes that an export expires at this time: RFC 3339. */
  readonly expect: (expiresAt: string) => void
  /** Expires what is overdue, if anything may be, and sets the timer for the next time. */
  readonly expireOverdue: () => Promise<void>
}

/** `expire` ends an export at this time, unless it has ended. Long because its functions share the time of the next look. */
export const createExpiry = (
  { database, ledger: { world }, logger }: ExportDependencies,
  timer: Timer,
  expire: (id: string, at: string) => Promise<void>,
): Expiry => {
  const oneByOne = createOneByOne(world, logger)
  let dueAtMs = 0

  const leftMs = (expiresAt: string): number => Date.parse(expiresAt) - world.now()

  const dueIn = (timeMs: number): void => {
    dueAtMs = Math.min(dueAtMs, world.monotonicMs() + Math.max(0, timeMs))
    timer.setAt(dueAtMs)
  }

  const expireListed = async (): Promise<void> => {
    const { text, values } = nextToExpire(AT_ONCE_MAX)
    const at = timeNow(world)
    const listed = await database.sql<{ id: string; expires_at: string }>(text, values)
    const overdue = listed.filter(({ expires_at }) => expires_at <= at)
    const next = listed[overdue.length]
    if (next !== undefined) dueIn(leftMs(next.expires_at))
    // After one that is overdue the read model has to be looked at again.
    if (overdue.length > 0) dueIn(RETRY_MS)
    await oneByOne(
      overdue.map(({ id }) => id),
      id => expire(id, at),
    )
  }

  return {
    expect: expiresAt => dueIn(leftMs(expiresAt)),
    expireOverdue: async () => {
      if (world.monotonicMs() < dueAtMs) return timer.setAt(dueAtMs)
      dueAtMs = world.monotonicMs() + WAIT_MAX_MS
      await expireListed().catch((error: unknown) => {
        if (!(error instanceof Unavailable)) throw error
        dueIn(RETRY_MS)
      })
      timer.setAt(dueAtMs)
    },
  }
}
