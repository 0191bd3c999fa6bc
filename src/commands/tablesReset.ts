import { forgetLog } from './logIdentity.ts'
import type { Database } from '../ports.ts'

/** The names under which processes take turns at the feeds. */
const LEASES = ['projector', 'worker', 'publisher', 'subscriptions']

/** Does the work while holding every lease, so that no process can run a feed; false when the patience ended first. */
const holdingLeases = async (
  database: Database,
  names: readonly string[],
  patience: AbortSignal,
  work: () => Promise<void>,
): Promise<boolean> => {
  const [name, ...others] = names
  if (name === undefined) {
    await work()
    return true
  }
  let isDone = false
  await database.exclusively(name, patience, async () => {
    isDone = await holdingLeases(database, others, patience, work)
  })
  return isDone
}

/** Empties every table that is made from the log, while no process runs; false, and no change, when one does. */
export const resetTables = (database: Database, patience: AbortSignal): Promise<boolean> =>
  holdingLeases(database, LEASES, patience, () => database.transaction(forgetLog))
