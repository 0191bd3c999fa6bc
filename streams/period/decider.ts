import type { DataOf } from '../codec.ts'
import { type Decider, type Rejection, reject } from '../decider.ts'
import type { PeriodEvent } from './events.ts'

export type ClosePeriod = DataOf<PeriodEvent, 'PeriodClosed'> & { type: 'ClosePeriod' }
export type Closing = Omit<DataOf<PeriodEvent, 'PeriodClosed'>, 'reason'>
export type PeriodCommand = ClosePeriod
export type PeriodCode = 'concurrent_modification'

/**
 * One stream per tenant. Each closing ends on a later day than the one before, and knows all that the one before knew.
 */
export type PeriodState = { readonly last: Closing | null }

const decide = (
  { through, complete_to, reason }: ClosePeriod,
  { last }: PeriodState,
): readonly PeriodEvent[] | Rejection<PeriodCode> => {
  // The day is closed already; YYYY-MM-DD is ordered as text.
  if (last !== null && through <= last.through) return []
  // The books were made anew meanwhile, and do not have again what they had at the last closing.
  if (last !== null && complete_to < last.complete_to) return reject('concurrent_modification')
  return [{ type: 'PeriodClosed', data: { through, complete_to, reason } }]
}

export const periodDecider: Decider<PeriodState, PeriodCommand, PeriodEvent, PeriodCode> = {
  initial: { last: null },
  decide,
  evolve: (_, { data: { through, complete_to } }) => ({ last: { through, complete_to } }),
  growth: { ClosePeriod: 'unlimited' },
}
