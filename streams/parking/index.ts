import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type ParkingCommand, parkingDecider, parkingGrowth, type ParkingState } from './decider.ts'
import { type ParkingEvent, parkingEvents } from './events.ts'
import { parkingFacts } from './facts.ts'

export const parking: Aggregate<ParkingState, ParkingCommand, ParkingEvent, never> = {
  category: 'parking',
  prefix: 'prk',
  decider: parkingDecider,
  growth: parkingGrowth,
  codec: codecOf(parkingEvents),
  facts: parkingFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
