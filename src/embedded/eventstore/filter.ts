import type { StoredRecord } from './record.ts'

/** The filter of a `$all` read: by stream name or by type, by regex or by prefixes. */
export type FilterSpec = {
  readonly on: 'stream' | 'type'
  readonly regex: string
  readonly prefixes: readonly string[]
}

export type Filter = (record: StoredRecord) => boolean

/** The regex takes precedence over prefixes, as in the real server. Throws SyntaxError for an invalid regex. */
export const filterOf = ({ on, regex, prefixes }: FilterSpec): Filter => {
  if (regex === '') return record => prefixes.some(prefix => record[on].startsWith(prefix))
  const pattern = new RegExp(regex)
  return record => pattern.test(record[on])
}
