import { aggregates } from '../../../streams/index.ts'
import { parkedSummary } from '../../../src/feeds/parkedEvents.ts'
import type { SimulatedLog } from '../eventStore.ts'
import { discardedName } from '../operator.ts'
import type { Engine } from '../postgres.ts'
import { isReadable } from './folding.ts'
import { violation, type Violation } from './violation.ts'

/** Parked events wait no more once their cause is mended, and those that were given up do not come back. */

/** A subscription that is paused or deleted delivers nothing of what waits for it. */
const SUBSCRIPTIONS = `${aggregates.subscription.prefix}_`

export const checkParked = async (
  log: SimulatedLog,
  engine: Engine,
  discarded: ReadonlySet<string>,
): Promise<readonly Violation[]> => {
  const parked = await parkedSummary(engine.run)
  return parked
    .filter(({ delivery }) => !delivery.startsWith(SUBSCRIPTIONS))
    .flatMap(fact => {
      const { delivery, key, position, stream, reason, requested } = fact
      const where = `${delivery} holds ${key} at ${position} (${reason}), requested: ${requested}`
      if (discarded.has(discardedName(fact))) return [violation('what was given up does not come back', where)]
      return isReadable(log.stream(stream)) ? [violation('what waits goes on once its cause is mended', where)] : []
    })
}
