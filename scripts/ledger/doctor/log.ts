import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { AnotherLog, checkLog, type Compared, logIn } from '../../../src/logIdentity/logIdentity.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { type Check, finding, notUsed, ok } from './finding.ts'

/** The check that tables and log belong together. */

const CHECK = 'log'

/** Checks whether the tables in Postgres belong to the log in the event store. */
export const compareLogs = async (compared: Omit<Compared, 'world'>): Promise<Check> => {
  if (!(await relationExists(compared.database.sql, 'log_identity')))
    return notUsed(CHECK, 'no service has run on this database')
  try {
    await checkLog({ ...compared, world: realWorld() })
    return ok(CHECK, `${(await logIn(compared.store)) ?? 'new'}, and the tables in Postgres belong to it`)
  } catch (error) {
    if (!(error instanceof AnotherLog)) throw error
    return finding(CHECK, error.message, 'Follow this advice; until then no service starts on these tables.')
  }
}
