import type { Decider } from '../decider.ts'
import { PersistentSet } from '../persistentMap.ts'
import type { ParkingEvent } from './events.ts'

export type ParkFacts = { type: 'ParkFacts'; positions: readonly bigint[] }
export type BeginReplay = { type: 'BeginReplay'; run: string }
export type ParkingCommand = ParkFacts | BeginReplay

export type ParkingState = {
  /** The positions of all events that were ever parked. */
  readonly parked: PersistentSet<`${bigint}`>
  /** The newest run that has begun to replay. */
  readonly run: string | null
}

const decide = (command: ParkingCommand, { parked, run }: ParkingState): readonly ParkingEvent[] => {
  switch (command.type) {
    case 'ParkFacts': {
      const positions = command.positions.filter(position => !parked.has(`${position}`))
      return positions.length === 0 ? [] : [{ type: 'FactsParked', data: { positions } }]
    }
    case 'BeginReplay':
      return command.run === run ? [] : [{ type: 'ReplayBegun', data: { run: command.run } }]
  }
}

const evolve = (state: ParkingState, event: ParkingEvent): ParkingState => {
  switch (event.type) {
    case 'FactsParked': {
      const parked = event.data.positions.reduce((all, position) => all.with(`${position}`), state.parked)
      return { ...state, parked }
    }
    case 'ReplayBegun':
      return { ...state, run: event.data.run }
  }
}

export const parkingDecider: Decider<ParkingState, ParkingCommand, ParkingEvent, never> = {
  initial: { parked: PersistentSet.of(), run: null },
  decide,
  evolve,
  // Parked events and starts of the projector are few, and a refusal would stop the read models.
  growth: { ParkFacts: 'unlimited', BeginReplay: 'unlimited' },
}
