import { z } from 'zod'
import type { EventOf } from '../codec.ts'
import { positionSchema } from '../position.ts'

export const parkingEvents = {
  /** The events at these positions could not be written as facts, and are about to be parked. */
  FactsParked: z.object({ positions: z.array(positionSchema).min(1).readonly() }),
  /** A run of the projector replays parked facts once it has read this event. */
  ReplayBegun: z.object({ run: z.string() }),
}
export type ParkingEvent = EventOf<typeof parkingEvents>
