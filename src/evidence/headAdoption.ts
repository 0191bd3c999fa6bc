import type { Sql } from '../ports.ts'
import { linesOfHeads } from './headFile.ts'
import { type Head, isLater, isSigned, parseHead } from './heads.ts'
import { publicKeys, storeHead } from './headStore.ts'

/** Takes heads from the file into a Postgres that was restored from an older backup, or that a killed process did not write to. */

/**
 * Stores the heads of the file after `after`, as far as their signatures are of known keys, and its last one, which the tree has to
 * agree with.
 */
export const storeHeadsOfFile = async (
  sql: Sql,
  path: string,
  { after, last }: { readonly after: Head | undefined; readonly last: Head },
): Promise<void> => {
  const keys = await publicKeys(sql)
  for await (const { bytes } of linesOfHeads(path)) {
    const head = parseHead(bytes.toString('utf8'))
    if ('unreadable' in head || head.generation !== last.generation || !isLater(last, head)) continue
    if ((after === undefined || isLater(head, after)) && isSigned(head, keys)) await storeHead(sql, head)
  }
  await storeHead(sql, last)
}
