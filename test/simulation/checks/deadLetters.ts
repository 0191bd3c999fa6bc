import { aggregates } from '../../../streams/index.ts'
import { deadLetterSummary } from '../../../src/feeds/deadLetters.ts'
import type { SimulatedLog } from '../eventStore.ts'
import { discardIdOf } from '../operator.ts'
import type { Engine } from '../postgres.ts'
import { isReadable } from './folding.ts'
import { violation, type Violation } from './violation.ts'

/** The dead letters at the end of a run, when all causes are repaired: only those that this build cannot read may be left. */

/** Dead letters of subscriptions may be left, because a paused or deleted subscription delivers nothing. */
const SUBSCRIPTIONS = `${aggregates.subscription.prefix}_`

export const checkParked = async (
  log: SimulatedLog,
  engine: Engine,
  discarded: ReadonlySet<string>,
): Promise<readonly Violation[]> => {
  const parked = await deadLetterSummary(engine.query)
  return parked
    .filter(({ delivery }) => !delivery.startsWith(SUBSCRIPTIONS))
    .flatMap(fact => {
      const { delivery, key, position, stream, reason, requested } = fact
      const where = `${delivery} holds ${key} at ${position} (${reason}), requested: ${requested}`
      if (discarded.has(discardIdOf(fact))) return [violation('a discarded event is not parked again', where)]
      return isReadable(log.stream(stream))
        ? [violation('a dead letter is processed once its cause is repaired', where)]
        : []
    })
}
