import { z } from 'zod'
import type { EventOf } from '../codec.ts'
import { positionSchema } from '../position.ts'

export const periodEvents = {
  /**
   * The books of the tenant are closed up to the end of a day in UTC. Entries of events up to `complete_to` were in the
   * books then and keep their time; those of all later events are dated after that day.
   */
  PeriodClosed: z.object({
    /** The last closed day: YYYY-MM-DD. */
    through: z.iso.date(),
    complete_to: positionSchema,
    /** The operator's reason, for auditors. */
    reason: z.string(),
  }),
}
export type PeriodEvent = EventOf<typeof periodEvents>
