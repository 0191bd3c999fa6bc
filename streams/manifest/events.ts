import { z } from 'zod'
import type { EventOf } from '../codec.ts'
import { positionSchema } from '../position.ts'

export const manifestEvents = {
  /**
   * These facts of the topic, of all tenants, lie between the two positions, both inclusive. Nothing more will ever come
   * between them, but for those that are missing.
   */
  ManifestSealed: z.object({
    topic: z.string(),
    from_position: positionSchema,
    to_position: positionSchema,
    count: z.int().min(0),
    /** Hexadecimal: over the ids in the order of their positions, each followed by a line feed. */
    sha256: z.string(),
    /** Events of the range that were held back when it was counted: they are not in the count, and may come late. */
    missing: z
      .array(z.object({ id: z.string(), position: positionSchema }))
      .readonly()
      .optional(),
  }),
}
export type ManifestEvent = EventOf<typeof manifestEvents>
