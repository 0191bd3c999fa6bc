import { z } from 'zod'
import { type IdPrefix, idPattern } from './ids.ts'

/**
 * Members that several facts share, with the schemas that consumers see. Closing an open list breaks no producer and
 * opening a closed one breaks consumers, so every list that may grow is described as open from the beginning.
 */

const described = <S extends z.ZodType>(schema: S, description: string): S => schema.meta({ description })

export const idMember = (prefix: IdPrefix, description: string) =>
  described(z.string().regex(idPattern(prefix)), description)

/** An integer within the range that every JSON parser keeps exactly. */
export const amountMember = (description: string) =>
  described(z.int().min(0).max(Number.MAX_SAFE_INTEGER), `${description} In minor units, as of the event.`)

export const countMember = (description: string) => described(z.int().min(0).max(Number.MAX_SAFE_INTEGER), description)

/** The exponent stands beside every amount, so a consumer needs no table of currencies. */
export const moneyMembers = {
  currency: described(z.string().regex(/^[A-Z]{3}$/), 'ISO 4217 code. Other currencies may be added.'),
  exponent: described(
    z.int().min(0).max(4),
    'Number of digits after the decimal point: an amount of 1099 is 10.99 with exponent 2, and 1099 with 0.',
  ),
}

export const timeMember = (description: string) => described(z.iso.datetime(), `${description} RFC 3339, UTC.`)
export const dateMember = (description: string) => described(z.iso.date(), `${description} RFC 3339 full-date.`)
export const textMember = (description: string) => described(z.string(), description)
export const positionMember = (description: string) =>
  described(
    z.string().regex(/^\d{1,20}$/),
    `${description} A position of the log, as text, since it may exceed what a double represents.`,
  )

/** Always present; null says that there is none. */
export const orNull = <S extends z.ZodType>(schema: S, description: string) =>
  described(schema.nullable(), `${description} Null when there is none.`)
