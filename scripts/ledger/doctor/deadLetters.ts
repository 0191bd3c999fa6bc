import { deadLetterSummary } from '../../../src/feeds/deadLetters.ts'
import type { Database } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { type Check, finding, ok } from './finding.ts'

/** The check of dead letters. */

const CHECK = 'dead letters'

/** Checks whether facts wait for an operator. */
export const checkDeadLetters = async ({ sql }: Database): Promise<Check> => {
  const keys = (await relationExists(sql, 'parked_facts')) ? await deadLetterSummary(sql) : []
  if (keys.length === 0) return ok(CHECK, 'none')
  const since = keys.map(({ first_failed_at }) => first_failed_at).toSorted()[0]
  const many = keys.length === 1 ? '1 key waits' : `${keys.length} keys wait`
  return finding(
    CHECK,
    `${many} with facts that could not be delivered, since ${since}.`,
    'See npm run ledger -- dead-letters list.',
  )
}
