import { z } from 'zod'

/** The maximum of bigint in Postgres. */
const POSITION_MAX = 2n ** 63n - 1n

/** A position of the log, as text, since it may exceed what a double can represent. */
export const POSITION = /^\d{1,19}$/
export const positionSchema = z
  .string()
  .regex(POSITION, {
    error: 'Must be a position: the `position` of a fact or a Ledger-Position header, such as 7731904.',
    abort: true,
  })
  .refine(text => BigInt(text) <= POSITION_MAX, { message: `Must be at most ${POSITION_MAX}.` })
