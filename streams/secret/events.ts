import { z } from 'zod'
import type { EventOf } from '../codec.ts'

/** The event of the secret of the log. */

/** Base64url of 32 random bytes. */
const SECRET = /^[\w-]{43}$/

export const secretEvents = {
  /**
   * `keyed_references`: the log was begun by a build that names the streams of payments' references by a keyed hash,
   * and stores no reference in an event. False in the logs of earlier builds, which go on as they began.
   */
  SecretMade: z.object({ secret: z.string().regex(SECRET), keyed_references: z.boolean() }),
}
export type SecretEvent = EventOf<typeof secretEvents>
