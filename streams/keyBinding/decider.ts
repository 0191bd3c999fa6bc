import type { IdempotencyRecord } from '../idempotencyRecord.ts'
import type { Decider } from '../decider.ts'
import type { KeyBindingEvent } from './events.ts'

export type BindKey = { type: 'BindKey'; claim: IdempotencyRecord }

/**
 * Ties an Idempotency-Key to its request where the first append goes to an existing stream: raising an invoice begins
 * with its order, rotating a secret with its API key. (Elsewhere the id of the new stream is made from the key.) Two
 * requests with one key both append to this stream before either changes anything else. The record of the first one
 * stays forever; a later request is compared with it.
 */
export type KeyBindingState =
  | { readonly status: 'none' }
  | { readonly status: 'bound'; readonly claim: IdempotencyRecord }

export const keyBindingDecider: Decider<KeyBindingState, BindKey, KeyBindingEvent, never> = {
  initial: { status: 'none' },
  decide: ({ claim }, binding) => (binding.status === 'none' ? [{ type: 'KeyBound', data: { claim } }] : []),
  evolve: (_, { data: { claim } }) => ({ status: 'bound', claim }),
  growth: { BindKey: 'unlimited' },
}
