import { z } from 'zod'
import type { EventOf } from '../codec.ts'
import { positionSchema } from '../position.ts'

export const manifestEvents = {
  /**
   * The facts of the topic, of all tenants, between two positions, both inclusive. The range is complete but for the
   * facts in `missing`.
   */
  ManifestSealed: z.object({
    topic: z.string(),
    from_position: positionSchema,
    to_position: positionSchema,
    count: z.int().min(0),
    /** SHA-256, hexadecimal, over the ids in the order of their positions, each followed by a line feed. */
    sha256: z.string(),
    /** Events of the range that were parked: they are not in the count and may follow late. */
    missing: z
      .array(z.object({ id: z.string(), position: positionSchema }))
      .readonly()
      .optional(),
  }),
}
export type ManifestEvent = EventOf<typeof manifestEvents>
