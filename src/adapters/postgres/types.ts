/** Conversion of Postgres values to JavaScript, exact where the default parsers of `pg` would lose precision. */

import { type CustomTypesConfig, types } from 'pg'

const INT8 = 20
const INT8_ARRAY = 1016
const DATE = 1082
const TIMESTAMP = 1114
const TIMESTAMPTZ = 1184
const TIMESTAMPTZ_ARRAY = 1185
const MS_LENGTH = '.000'.length

const DAY_END = '2026-01-31'.length
const SECONDS_END = '2026-01-31 23:59:59'.length
const OFFSET = '+00'
const SHORTEST = SECONDS_END + OFFSET.length
/** The fraction of a second with fewer digits than milliseconds, by the number of its characters. */
const MISSING_DIGITS = ['.000', '000', '00', '0'] as const

/**
 * RFC 3339 in UTC with milliseconds; sessions run in UTC. `infinity` and years beyond 9999 or before our era, which have other
 * lengths or ends, are not converted. Without a regular expression, since this runs for each time of each row.
 */
export const timestamp = (text: string): string => {
  if (text.length < SHORTEST || text[DAY_END] !== ' ' || !text.endsWith(OFFSET)) return text
  const fractionLength = text.length - SHORTEST
  const missing = MISSING_DIGITS[fractionLength] ?? ''
  const end = Math.min(text.length - OFFSET.length, SECONDS_END + MS_LENGTH)
  return `${text.slice(0, DAY_END)}T${text.slice(DAY_END + 1, end)}${missing}Z`
}

/** One-dimensional arrays whose items contain neither commas nor escapes, such as numbers and instants. */
const each =
  <T>(parse: (text: string) => T) =>
  (text: string): readonly (T | null)[] => {
    const items = text.slice(1, -1)
    if (items === '') return []
    return items.split(',').map(item => (item === 'NULL' ? null : parse(item.replaceAll('"', ''))))
  }

const asIs = (text: string): string => text

const parsers = new Map<number, (text: string) => unknown>([
  [INT8, BigInt],
  [INT8_ARRAY, each(BigInt)],
  // A date, or a time without zone, is not an instant; `pg` would convert it with the local time zone.
  [DATE, asIs],
  [TIMESTAMP, asIs],
  [TIMESTAMPTZ, timestamp],
  [TIMESTAMPTZ_ARRAY, each(timestamp)],
])

/** int8 → bigint, numeric → string, timestamptz → RFC 3339 string, date → string, json → parsed. */
export const valueTypes: CustomTypesConfig = {
  getTypeParser: (oid, format) => parsers.get(oid) ?? types.getTypeParser(oid, format),
}
