/** Conversion of Postgres values to JavaScript, exact where the default parsers of `pg` would lose precision. */

import { type CustomTypesConfig, types } from 'pg'

const INT8 = 20
const INT8_ARRAY = 1016
const DATE = 1082
const TIMESTAMP = 1114
const TIMESTAMPTZ = 1184
const TIMESTAMPTZ_ARRAY = 1185

const INSTANT = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,3})\d*)?\+00$/

/** RFC 3339 in UTC with milliseconds. `infinity` and years that have another form are not converted. */
export const timestamp = (text: string): string => {
  const [, day, time, fraction = ''] = INSTANT.exec(text) ?? []
  return day === undefined ? text : `${day}T${time}.${fraction.padEnd(3, '0')}Z`
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
