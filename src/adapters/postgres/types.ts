/** How Postgres values become JavaScript values: exact where the default parsers of `pg` would lose something. */

import { type CustomTypesConfig, types } from 'pg'

const INT8 = 20
const INT8_ARRAY = 1016
const DATE = 1082
const TIMESTAMP = 1114
const TIMESTAMPTZ = 1184
const TIMESTAMPTZ_ARRAY = 1185
const MS_DIGITS = 3

const UTC = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00$/

/** RFC 3339 in UTC with milliseconds; sessions run in UTC. `infinity` and years beyond 9999 stay as Postgres writes them. */
export const timestamp = (text: string): string => {
  const [, day, time, fraction = ''] = UTC.exec(text) ?? []
  return day === undefined ? text : `${day}T${time}.${fraction.slice(0, MS_DIGITS).padEnd(MS_DIGITS, '0')}Z`
}

/** Arrays of one dimension whose items hold neither commas nor escapes, as numbers and instants do not. */
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
  // A day or a time without a zone is no instant, and `pg` would make one of it in the zone of this machine.
  [DATE, asIs],
  [TIMESTAMP, asIs],
  [TIMESTAMPTZ, timestamp],
  [TIMESTAMPTZ_ARRAY, each(timestamp)],
])

/** int8 → bigint, numeric → string, timestamptz → RFC 3339 string, date → string, json → parsed. */
export const valueTypes: CustomTypesConfig = {
  getTypeParser: (oid, format) => parsers.get(oid) ?? types.getTypeParser(oid, format),
}
