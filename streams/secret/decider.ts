import type { Decider } from '../decider.ts'
import type { SecretEvent } from './events.ts'

export type MakeSecret = { type: 'MakeSecret'; secret: string }

/**
 * A secret of the log itself: made once, by the first process that needs it, and the same for every process of every
 * instance from then on. It lives exactly as long as the events that depend on it, and is backed up with them.
 */
export type SecretState = { readonly status: 'none' } | { readonly status: 'made'; readonly secret: string }

export const secretDecider: Decider<SecretState, MakeSecret, SecretEvent, never> = {
  initial: { status: 'none' },
  // The first secret stays. A second process that makes one at the same time takes the first instead.
  decide: ({ secret }, { status }) => (status === 'none' ? [{ type: 'SecretMade', data: { secret } }] : []),
  evolve: (state, { data: { secret } }) => (state.status === 'none' ? { status: 'made', secret } : state),
}
