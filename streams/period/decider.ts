import { type Decider, type Rejection, reject, type StreamGrowth } from '../decider.ts'
import type { PeriodEvent } from './events.ts'

/** The decider of accounting periods, which operators close. */

export type Closing = { readonly through: string; readonly complete_to: bigint }
export type ClosePeriod = Closing & { type: 'ClosePeriod'; reason: string }
export type PeriodCommand = ClosePeriod
export type PeriodCode = 'concurrent_modification'

/**
 * One stream per tenant. Each closing ends on a later day than the one before, and knows all that the one before knew.
 */
export type PeriodState = { readonly last: Closing | null }

const close = (
  { through, complete_to, reason }: ClosePeriod,
  { last }: PeriodState,
): readonly PeriodEvent[] | Rejection<PeriodCode> => {
  // The day is closed already; YYYY-MM-DD is ordered as text.
  if (last !== null && through <= last.through) return []
  // The books were made anew meanwhile, and do not have again what they had at the last closing.
  if (last !== null && complete_to < last.complete_to) return reject('concurrent_modification')
  return [{ type: 'PeriodClosed', data: { through, complete_to, reason } }]
}

const decide = (command: PeriodCommand, state: PeriodState) => {
  switch (command.type) {
    case 'ClosePeriod':
      return close(command, state)
  }
}

const evolve = (_state: PeriodState, event: PeriodEvent): PeriodState => {
  switch (event.type) {
    case 'PeriodClosed': {
      const { through, complete_to } = event.data
      return { last: { through, complete_to } }
    }
  }
}

export const periodDecider: Decider<PeriodState, PeriodCommand, PeriodEvent, PeriodCode> = {
  initial: { last: null },
  decide,
  evolve,
}

export const periodGrowth: Readonly<Record<PeriodCommand['type'], StreamGrowth>> = {
  ClosePeriod: 'unlimited',
}
