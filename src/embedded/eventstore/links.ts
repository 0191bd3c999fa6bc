import { type Log, readOne } from './read.ts'
import type { StoredRecord } from './record.ts'

const LINK_TYPE = '$>'
const TARGET = /^(-1|\d{1,19})@(.+)$/s

export const isLink = ({ type }: StoredRecord): boolean => type === LINK_TYPE

/** The event of a link (`revision@stream`), if the reader may see it. Links to links are resolved one step. */
export const targetOf = async (logger: Log, link: StoredRecord): Promise<StoredRecord | undefined> => {
  const [, revision, stream] = TARGET.exec(link.data.toString('utf8')) ?? []
  return revision === undefined || stream === undefined ? undefined : readOne(logger, stream, BigInt(revision))
}
