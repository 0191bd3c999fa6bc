import type { Decider } from '../decider.ts'
import type { SecretEvent } from './events.ts'

export type MakeSecret = { type: 'MakeSecret'; secret: string }

/**
 * The secret of the log: made once, by the first process that needs it, and the same for every process from then on. It
 * is stored and backed up with the events that depend on it.
 */
export type SecretState = { readonly status: 'none' } | { readonly status: 'made'; readonly secret: string }

export const secretDecider: Decider<SecretState, MakeSecret, SecretEvent, never> = {
  initial: { status: 'none' },
  // The first secret stays; a second process that makes one at the same time uses the first.
  decide: ({ secret }, { status }) => (status === 'none' ? [{ type: 'SecretMade', data: { secret } }] : []),
  evolve: (state, { data: { secret } }) => (state.status === 'none' ? { status: 'made', secret } : state),
  growth: { MakeSecret: 'unlimited' },
}
