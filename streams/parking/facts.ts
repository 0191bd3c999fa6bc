import type { FactMap } from '../facts.ts'
import type { ParkingEvent } from './events.ts'

/** Internal events: how facts are published is no fact. */

export const parkingFacts: FactMap<ParkingEvent> = { FactsParked: 'internal', ReplayBegun: 'internal' }
