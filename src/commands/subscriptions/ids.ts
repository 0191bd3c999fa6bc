import { CROCKFORD, type OperationId, type SubscriptionId, withPrefix } from '../../../streams/ids.ts'
import type { World } from '../../ports.ts'
import { randomId } from '../../lib/identifiers.ts'
import { idOfKey, type ScopedKey } from '../idempotency/record.ts'

/**
 * A subscription's id ends in zeros, where the id of a replay's operation has its number: it leads to the stream
 * without a look-up. The other 110 bits cannot be guessed.
 */

const REPLAY_DIGITS = 4
const NO_REPLAY = '0'.repeat(REPLAY_DIGITS)
const BASE = CROCKFORD.length

const withNumber = (id: SubscriptionId, digits: string): SubscriptionId =>
  `sub_${id.slice('sub_'.length, -REPLAY_DIGITS)}${digits}`

export const newSubscriptionId = (world: World): SubscriptionId => withNumber(randomId('sub', world), NO_REPLAY)

export const subscriptionIdOf = (key: ScopedKey): SubscriptionId => withNumber(idOfKey('sub', key), NO_REPLAY)

/** The operation of the replay with this number; the first has number 1. */
export const replayIdOf = (id: SubscriptionId, replay: number): OperationId => {
  let digits = ''
  for (let rest = replay; digits.length < REPLAY_DIGITS; rest = Math.floor(rest / BASE))
    digits = `${CROCKFORD[rest % BASE]}${digits}`
  return withPrefix('op', withNumber(id, digits))
}

/** The replay that an operation id stands for. Only the stream tells whether there was such a replay. */
export const replayOfOperation = (operation: OperationId): { readonly id: SubscriptionId; readonly replay: number } => {
  const digits = operation.slice(-REPLAY_DIGITS)
  const replay = digits.split('').reduce((number, digit) => number * BASE + CROCKFORD.indexOf(digit), 0)
  return { id: withNumber(withPrefix('sub', operation), NO_REPLAY), replay }
}
