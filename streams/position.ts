import { z } from 'zod'

/** A position of the log. It is text in JSON, because it may exceed the integers that a double represents. */
export const positionSchema = z.codec(
  z.string().regex(/^\d{1,20}$/, 'Must be a position as a string of digits, such as 6349.'),
  z.bigint(),
  {
    decode: text => BigInt(text),
    encode: position => position.toString(),
  },
)
