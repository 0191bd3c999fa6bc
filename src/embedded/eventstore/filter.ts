import type { StoredRecord } from './record.ts'

/** Which events of `$all` are wanted: by the name of their stream or by their type, by regex or by prefixes. */
export type FilterSpec = {
  readonly on: 'stream' | 'type'
  readonly regex: string
  readonly prefixes: readonly string[]
}

export type Filter = (record: StoredRecord) => boolean

/** Prefixes win over the regex, as in the real server. Throws SyntaxError for a regex that cannot be read. */
export const filterOf = ({ on, regex, prefixes }: FilterSpec): Filter => {
  if (prefixes.length > 0) return record => prefixes.some(prefix => record[on].startsWith(prefix))
  const pattern = new RegExp(regex)
  return record => pattern.test(record[on])
}
