import { AnotherLog, checkLog, logIn, logOf } from '../../../src/logIdentity/logIdentity.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { nothingCompared, type VerifyCheck } from './check.ts'

/** The check that the tables in Postgres are made from the log in the event store. */

export const logCheck: VerifyCheck = {
  name: 'log',
  run: async ({ store, database, world }) => {
    if (!(await relationExists(database.sql, 'log_identity')))
      return nothingCompared({ store }, 'No service has run on this database.')
    try {
      await checkLog({ store, database, world })
      if ((await logOf(database.sql)) === undefined)
        return nothingCompared({ store }, 'The tables in Postgres are not made from any log yet.')
      return { detail: `The tables are of the log ${await logIn(store)}.`, findings: [] }
    } catch (error) {
      if (!(error instanceof AnotherLog)) throw error
      return {
        detail: 'The tables are not of this log.',
        findings: [{ kind: 'another_log', detail: error.message }],
      }
    }
  },
}
