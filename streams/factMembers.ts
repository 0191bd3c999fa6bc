import { z } from 'zod'
import { type IdPrefix, idPattern } from './ids.ts'

/**
 * The members that facts have in common, as their consumers are told of them. A promise can be widened no more than it can
 * be narrowed: who has read that there are these currencies and no others breaks at the next one. So what may grow is said
 * to be open from the beginning.
 */

const described = <S extends z.ZodType>(schema: S, description: string): S => schema.meta({ description })

export const idMember = (prefix: IdPrefix, description: string) =>
  described(z.string().regex(idPattern(prefix)), description)

/** A whole number that every JSON parser keeps. */
export const amountMember = (description: string) =>
  described(z.int().min(0).max(Number.MAX_SAFE_INTEGER), `${description} In minor units, as of the event.`)

export const countMember = (description: string) => described(z.int().min(0).max(Number.MAX_SAFE_INTEGER), description)

/** Beside every amount, so that a consumer needs no table of currencies. */
export const moneyMembers = {
  currency: described(z.string().regex(/^[A-Z]{3}$/), 'ISO 4217 code. Others than today’s may come.'),
  exponent: described(
    z.int().min(0).max(4),
    'Digits of the minor unit: an amount of 1099 is 10.99 at exponent 2, 1099 at 0.',
  ),
}

export const timeMember = (description: string) => described(z.iso.datetime(), `${description} RFC 3339, UTC.`)
export const dateMember = (description: string) => described(z.iso.date(), `${description} RFC 3339 full-date.`)
export const textMember = (description: string) => described(z.string(), description)
export const positionMember = (description: string) =>
  described(z.string().regex(/^\d{1,20}$/), `${description} A position of the log, as text: it may outgrow a double.`)

/** Always present: null is the answer, not the lack of one. */
export const orNull = <S extends z.ZodType>(schema: S, description: string) =>
  described(schema.nullable(), `${description} Null when there is none.`)
