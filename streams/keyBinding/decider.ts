import type { IdempotencyRecord } from '../idempotencyRecord.ts'
import type { Decider } from '../decider.ts'
import type { KeyBindingEvent } from './events.ts'

export type BindKey = { type: 'BindKey'; claim: IdempotencyRecord }

/**
 * Binds the key of a command whose first append is on a stream that the key does not name: raising an invoice begins
 * with its order, rotating a secret with its API key. Two requests with one key meet here before either changes
 * anything. The first is bound for ever; a later one compares itself with the stored claim.
 */
export type KeyBindingState =
  | { readonly status: 'none' }
  | { readonly status: 'bound'; readonly claim: IdempotencyRecord }

export const keyBindingDecider: Decider<KeyBindingState, BindKey, KeyBindingEvent, never> = {
  initial: { status: 'none' },
  decide: ({ claim }, binding) => (binding.status === 'none' ? [{ type: 'KeyBound', data: { claim } }] : []),
  evolve: (_, { data: { claim } }) => ({ status: 'bound', claim }),
}
