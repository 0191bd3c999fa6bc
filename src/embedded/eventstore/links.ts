import { type Log, readOne } from './read.ts'
import type { StoredRecord } from './record.ts'

const LINK_TYPE = '$>'
const TARGET = /^(-1|\d{1,19})@(.+)$/s

export const isLink = ({ type }: StoredRecord): boolean => type === LINK_TYPE

/**
 * The event that a link leads to, by `revision@stream`, if a reader of that stream may see it. One step is resolved: a
 * link to a link leads to a link.
 */
export const targetOf = async (log: Log, link: StoredRecord): Promise<StoredRecord | undefined> => {
  const [, revision, stream] = TARGET.exec(link.data.toString('utf8')) ?? []
  return revision === undefined || stream === undefined ? undefined : readOne(log, stream, BigInt(revision))
}
