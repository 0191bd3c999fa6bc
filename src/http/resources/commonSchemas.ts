import { z } from 'zod'
import { ANNOTATIONS_MAX } from '../../../streams/idempotencyRecord.ts'
import { AMOUNT_MAX, currencySchema } from '../../../streams/money.ts'

/** Decimal amounts are the usual mistake. */
const MINOR_UNITS = 'Must be a whole number of minor units, such as 1099 for 10.99 USD.'

export const amountSchema = z
  .int({ error: ({ code, input }) => (code === 'invalid_type' && typeof input === 'number' ? MINOR_UNITS : undefined) })
  .min(1)
  .max(Number(AMOUNT_MAX))
  .meta({ description: 'An amount in minor units of the currency: 1099 in USD is 10.99 dollars.' })

/** A sum of amounts; zero is permitted. */
export const sumSchema = z.int().min(0).meta({ description: 'An amount in minor units of the currency.' })

export { currencySchema }

export const exponentSchema = z
  .int()
  .min(0)
  .max(4)
  .meta({ description: 'Number of digits after the decimal point of the currency: 2 for USD, 0 for JPY.' })

const hasYear = (text: string): boolean => !text.startsWith('0000')
const NO_YEAR = { message: 'Must have a year from 0001 to 9999.' }
/** With nanoseconds. Limited, since the text becomes a parameter of a query. */
const SECOND_DIGITS = 'Must have at most nine decimal places of a second.'
const TIME_CHARS_MAX = '2026-01-01T00:00:00.123456789Z'.length

export const timeSchema = z.iso.datetime().max(TIME_CHARS_MAX, SECOND_DIGITS).refine(hasYear, NO_YEAR).meta({
  id: 'Timestamp',
  description: 'A time by RFC 3339, in UTC, in the years 1 to 9999, with at most nine digits of a second.',
})

const OFFSET_CHARS = '+00:00'.length
const OFFSET = /(?:\.(?<fraction>\d+))?(?<offset>[+-]\d\d:\d\d)$/

/** The same instant in UTC, with the same digits of a second. A time in UTC stays as it was sent. */
const inUtc = (text: string): string => {
  const match = OFFSET.exec(text)
  if (match === null) return text
  const { fraction, offset } = match.groups as { fraction?: string; offset: string }
  const seconds = new Date(`${text.slice(0, match.index)}${offset}`).toISOString().replace('.000Z', '')
  return `${seconds}${fraction === undefined ? '' : `.${fraction}`}Z`
}

/** Whether the time has a year of four digits in UTC too: an offset may lead across the first or the last one. */
const hasYearInUtc = (text: string): boolean => /^\d{4}-/.test(inUtc(text)) && hasYear(inUtc(text))

/** A time in a request: with any offset, which a client's library may write even for UTC; in UTC once it is checked. */
export const timeParameter = z.iso
  .datetime({ offset: true, abort: true })
  .max(TIME_CHARS_MAX - 1 + OFFSET_CHARS, SECOND_DIGITS)
  .refine(text => !/\.\d{10}/.test(text), SECOND_DIGITS)
  .refine(text => hasYear(text) && hasYearInUtc(text), NO_YEAR)
  .meta({
    id: 'TimeParameter',
    description:
      'A time by RFC 3339, in UTC or with an offset (encode + as %2B in a URL), in the years 1 to 9999, with at most nine digits of a second.',
    // The format says it; a pattern would be a change that no comparison of contracts can judge.
    override: ({ jsonSchema }) => void delete jsonSchema.pattern,
  })
  .transform(inUtc)

export const dateSchema = z.iso.date().refine(hasYear, NO_YEAR)

const METADATA_KEY_CHARS_MAX = 40
const METADATA_VALUE_CHARS_MAX = 500

const metadataKey = z.string().min(1).max(METADATA_KEY_CHARS_MAX)
const metadataValue = z.string().max(METADATA_VALUE_CHARS_MAX)

export const TOO_MANY_KEYS = `Must have at most ${ANNOTATIONS_MAX} keys.`
export const metadataSchema = z
  .record(metadataKey, metadataValue)
  .refine(metadata => Object.keys(metadata).length <= ANNOTATIONS_MAX, { message: TOO_MANY_KEYS })
  .meta({
    description: 'Key-value pairs of the caller, stored and returned unchanged.',
    maxProperties: ANNOTATIONS_MAX,
  })

/** Metadata in a merge patch: null removes a key, also one that cannot exist (RFC 7396). */
export const metadataPatchSchema = z
  .record(z.string(), metadataValue.nullable())
  .superRefine((patch, context) => {
    const kept = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== null))
    for (const issue of metadataSchema.safeParse(kept).error?.issues ?? []) context.addIssue({ ...issue })
  })
  .meta({
    description: `Null removes a key. At most ${ANNOTATIONS_MAX} keys may remain after the change.`,
    override: { propertyNames: { type: 'string', minLength: 1, maxLength: METADATA_KEY_CHARS_MAX } },
  })

const TEXT_CHARS_MAX = 500
// Postgres refuses U+0000. In a body the JSON parser refuses it; this check is for query parameters.
export const textSchema = z
  .string()
  .min(1)
  .max(TEXT_CHARS_MAX)
  .refine(text => !text.includes('\u0000'), { message: 'A string must not contain the character U+0000.' })

export const resourceShape = {
  version: z.int().min(0).meta({ description: 'A number that increases with every change.' }),
  tenant_id: z.string(),
  created_at: timeSchema,
  updated_at: timeSchema,
  created_by: z.string(),
  metadata: z.record(z.string(), z.string()),
}

/** The query of every GET by id: the state at an earlier time. */
export const asOfQuery = z.object({
  as_of: timeParameter
    .optional()
    .meta({ description: 'Returns the resource as it was at this time; 404 before its creation.' }),
})

export const NOT_MODIFIED = { description: 'The caller’s copy is current.', headers: ['ETag'] } as const

/** The headers of every response to the creation of a resource. */
export const CREATED_HEADERS = ['Location', 'ETag', 'Ledger-Position', 'Idempotent-Replayed'] as const

export const changedResource = <T extends z.ZodType>(schema: T, description: string) =>
  ({ description, schema, headers: ['ETag', 'Ledger-Position'] }) as const

/** The body of a command without members. */
export const emptyBody = z.strictObject({}).default({})

/** The declared responses and errors of every GET by id. */
export const resourceById = <T extends z.ZodType>(schema: T, description: string) =>
  ({
    responses: { 200: { description, schema, headers: ['ETag'] }, 304: NOT_MODIFIED },
    errors: ['precondition_invalid'],
  }) as const
