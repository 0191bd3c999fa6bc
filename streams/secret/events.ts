import { z } from 'zod'
import type { EventOf } from '../codec.ts'

/** Base64url of 32 random bytes. */
const SECRET = /^[\w-]{43}$/

export const secretEvents = {
  SecretMade: z.object({ secret: z.string().regex(SECRET) }),
}
export type SecretEvent = EventOf<typeof secretEvents>
