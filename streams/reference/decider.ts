import type { Decider } from '../decider.ts'
import type { PaymentId } from '../ids.ts'
import { PersistentMap, PersistentSet } from '../persistentMap.ts'
import type { ReferenceEvent } from './events.ts'

export type TakeReference = { type: 'TakeReference'; payment_id: PaymentId }
export type ReleaseReference = { type: 'ReleaseReference'; payment_id: PaymentId }
export type ReferenceCommand = TakeReference | ReleaseReference

/**
 * free ─▶ taken ─▶ free, only by the payment that holds it, and only while that payment never came to be. A refusal is
 * an event: two drivers of one payment, one before and one after the holder let go, must not see different answers.
 */
export type ReferenceState = {
  readonly holder: PaymentId | null
  /** The refused payments, each with the payment that held the reference then. */
  readonly refused: PersistentMap<PaymentId, PaymentId>
  /**
   * The payments that released it. None of them takes it again: a slow second driver of a payment that has failed in
   * the meantime would take it, and nothing would release it after that.
   */
  readonly released: PersistentSet<PaymentId>
}

const take = ({ payment_id }: TakeReference, state: ReferenceState): readonly ReferenceEvent[] => {
  const { holder, refused, released } = state
  if (holder === payment_id || refused.has(payment_id) || released.has(payment_id)) return []
  if (holder === null) return [{ type: 'ReferenceTaken', data: { payment_id } }]
  return [{ type: 'ReferenceRefused', data: { payment_id, held_by: holder } }]
}

const release = ({ payment_id }: ReleaseReference, { holder }: ReferenceState): readonly ReferenceEvent[] =>
  holder === payment_id ? [{ type: 'ReferenceReleased', data: { payment_id } }] : []

const decide = (command: ReferenceCommand, state: ReferenceState): readonly ReferenceEvent[] => {
  switch (command.type) {
    case 'TakeReference':
      return take(command, state)
    case 'ReleaseReference':
      return release(command, state)
  }
}

const evolve = (state: ReferenceState, event: ReferenceEvent): ReferenceState => {
  switch (event.type) {
    case 'ReferenceTaken':
      return { ...state, holder: event.data.payment_id }
    case 'ReferenceRefused':
      return { ...state, refused: state.refused.with(event.data.payment_id, event.data.held_by) }
    case 'ReferenceReleased':
      return { ...state, holder: null, released: state.released.with(event.data.payment_id) }
  }
}

export const referenceDecider: Decider<ReferenceState, ReferenceCommand, ReferenceEvent, never> = {
  initial: { holder: null, refused: PersistentMap.of(), released: PersistentSet.of() },
  decide,
  evolve,
}
