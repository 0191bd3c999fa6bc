import { z } from 'zod'

/** A position of the log: text in JSON, since it may outgrow what a double holds. */
export const positionSchema = z.codec(z.string().regex(/^\d{1,20}$/), z.bigint(), {
  decode: text => BigInt(text),
  encode: position => position.toString(),
})
