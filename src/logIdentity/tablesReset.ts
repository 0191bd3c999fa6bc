import { emptyTablesOfLog } from './logIdentity.ts'
import type { Database } from '../ports.ts'
import { FEED_LEASES } from '../schema/locks.ts'

/** The reset of all tables that are made from the log, for `ledger projections reset`. */

/** Does the work while holding every lease, so no process can run a feed; false when `giveUp` aborts first. */
const holdingLeases = async (
  database: Database,
  names: readonly string[],
  giveUp: AbortSignal,
  work: () => Promise<void>,
): Promise<boolean> => {
  const [name, ...others] = names
  if (name === undefined) {
    await work()
    return true
  }
  let isDone = false
  await database.withLease(name, giveUp, async () => {
    isDone = await holdingLeases(database, others, giveUp, work)
  })
  return isDone
}

/** The tables may be large. */
const STATEMENT_TIMEOUT_MS = 600_000

/** Empties every table that is made from the log, while no process runs; false, and no change, when one does. */
export const resetTables = (database: Database, giveUp: AbortSignal): Promise<boolean> =>
  holdingLeases(database, FEED_LEASES, giveUp, () => database.transaction(emptyTablesOfLog, STATEMENT_TIMEOUT_MS))
