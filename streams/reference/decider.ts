import { decidedBy, type Decider } from '../decider.ts'
import type { PaymentId } from '../ids.ts'
import { PersistentMap, PersistentSet } from '../persistentMap.ts'
import type { ReferenceEvent } from './events.ts'

export type TakeReference = { type: 'TakeReference'; payment_id: PaymentId }
export type ReleaseReference = { type: 'ReleaseReference'; payment_id: PaymentId }
export type ReferenceCommand = TakeReference | ReleaseReference

/**
 * free ─▶ taken ─▶ free again, if the payment that took it was refused. A refusal of the reference is an event: the request
 * of a payment and its recovery must get the same result, also if the holder releases the reference between the two.
 */
export type ReferenceState = {
  readonly holder: PaymentId | null
  /** The payments that were refused the reference, each with the payment that held it then. */
  readonly refused: PersistentMap<PaymentId, PaymentId>
  /**
   * The payments that released it. None of them takes it again: a slow request whose payment recovery has recorded as
   * failed would take it, and nothing would release it after that.
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
  ...decidedBy<ReferenceCommand, ReferenceState, readonly ReferenceEvent[]>({
    TakeReference: ['limited', take],
    ReleaseReference: ['unlimited', release],
  }),
  evolve,
}
