import { realWorld } from '../../../src/clockAndRandomness.ts'
import { AnotherLog, checkLog, logIn } from '../../../src/commands/logIdentity.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import type { VerifyCheck } from './check.ts'

/** The check that the tables in Postgres are made from the log in the event store. */

export const logCheck: VerifyCheck = {
  name: 'log',
  run: async ({ store, database }) => {
    if (!(await relationExists(database.sql, 'log_identity')))
      return { detail: 'No service has run on this database.', findings: [], skipped: true }
    try {
      await checkLog({ store, database, world: realWorld() })
      return { detail: `The tables are of the log ${(await logIn(store)) ?? 'that is new'}.`, findings: [] }
    } catch (error) {
      if (!(error instanceof AnotherLog)) throw error
      return {
        detail: 'The tables are not of this log.',
        findings: [{ kind: 'another_log', detail: error.message }],
      }
    }
  },
}
