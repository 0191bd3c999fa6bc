import { access } from 'node:fs/promises'
import type { Sql } from '../ports.ts'
import { SignedEventsLost } from './continuity.ts'
import { type HeadFile, linesOfHeads } from './headFile.ts'
import { FIRST_GENERATION, type Head, isLater, isSigned, parseHead, type PublicKeys, type SigningKey } from './heads.ts'
import { headsAfter, lastHead, lastRestart, publicKeys, storeHead } from './headStore.ts'

/** Makes the file and Postgres have the same heads, after a killed process or a restore. Only signed ones count. */

/** The message names the place of the head. */
export class UntrustedHead extends Error {
  constructor(place: string, { key, time }: Head) {
    super(
      `${place}, of ${time} with the key ${key}, is not signed by a key of this service. Nothing is signed any more. Compare with ` +
        'copies of the heads and with npm run ledger -- verify, and remove it if the service did not write it; after a change of ' +
        'the key, start once with the key that signed it.',
    )
    this.name = 'UntrustedHead'
  }
}

const nameOf = ({ generation, tree_size }: Head): string =>
  `the head of ${tree_size} events of generation ${generation}`

const countLines = async (path: string): Promise<number> => {
  let count = 0
  for await (const { flaw } of linesOfHeads(path)) if (flaw !== 'torn') count += 1
  return count
}

/** The last head of the file. Throws UntrustedHead if none of the keys has signed it. */
const trustedLast = async ({ last, path }: HeadFile, keys: PublicKeys): Promise<Head | undefined> => {
  const head = await last()
  if (head !== undefined && !isSigned(head, keys))
    throw new UntrustedHead(`Line ${await countLines(path)} of ${path}, ${nameOf(head)}`, head)
  return head
}

/** Stores the signed heads of the file that are later than `after`. */
const storeHeadsOfFile = async (sql: Sql, path: string, keys: PublicKeys, after: Head | undefined): Promise<void> => {
  for await (const { bytes } of linesOfHeads(path)) {
    const head = parseHead(bytes.toString('utf8'))
    if ('unreadable' in head || (after !== undefined && !isLater(head, after))) continue
    if (isSigned(head, keys)) await storeHead(sql, head)
  }
}

/** This service's key signed heads of the file, and another one signed the last. */
export class ReplacedKey extends Error {
  constructor(path: string, { key, time }: Head, own: string) {
    super(
      `The last head of ${path}, of ${time}, is signed with the key ${key}, and this service's key ${own} signed heads before it. ` +
        'Nothing is signed any more, because a key that was replaced signs no more. If it was replaced on purpose, set ' +
        'EVIDENCE_SIGNING_KEY to the key that replaced it, or to a new one; if not, that head is forged: see scripts/ledger/DISASTER.md.',
    )
    this.name = 'ReplacedKey'
  }
}

/**
 * The keys that signed heads of the file, which no writer of the database has written. By key the first head of the key that
 * replaced it: from there on it may be in other hands, and proves nothing.
 */
const signersIn = async (path: string, keys: PublicKeys): Promise<ReadonlyMap<string, Head | undefined>> => {
  const signers = new Map<string, Head | undefined>()
  let current: string | undefined
  for await (const { bytes } of linesOfHeads(path)) {
    const head = parseHead(bytes.toString('utf8'))
    if ('unreadable' in head || signers.has(head.key) || !isSigned(head, keys)) continue
    if (current !== undefined) signers.set(current, head)
    signers.set(head.key, undefined)
    current = head.key
  }
  return signers
}

/** Whether the key that signed the file at that place has signed the head; any key, where the file has no head. */
export const trustedBy = async (path: string, keys: PublicKeys): Promise<(head: Head) => boolean> => {
  const isThere = await access(path).then(
    () => true,
    () => false,
  )
  const signers = isThere ? await signersIn(path, keys) : new Map<string, Head | undefined>()
  const isNamed = (head: Head): boolean => {
    const until = signers.get(head.key)
    return signers.has(head.key) && (until === undefined || isLater(until, head))
  }
  return head => (signers.size === 0 || isNamed(head)) && isSigned(head, keys)
}

/**
 * The newest head of the file, or a later trusted one of Postgres. For readers, who make nothing equal. A damaged last
 * line counts as none.
 */
export const newestTrusted = async (
  sql: Sql,
  { last }: Pick<HeadFile, 'last'>,
  isTrusted: (head: Head) => boolean,
): Promise<Head | undefined> => {
  const [stored, written] = [await lastHead(sql), await last().catch(() => undefined)]
  if (written === undefined || stored === undefined) return written ?? stored
  return isTrusted(stored) && isLater(stored, written) ? stored : written
}

/**
 * A key in the table, which is neither this process's nor that of the file's last head, proves nothing. A lost file is written
 * again with the keys of the database.
 */
const appendHeadsOfPostgres = async (sql: Sql, headFile: HeadFile, keys: PublicKeys, own: string): Promise<void> => {
  let after = await headFile.last()
  let signer = after?.key
  const isNewFile = after === undefined
  for (;;) {
    const missing = await headsAfter(sql, after)
    if (missing.length === 0) return
    for (const head of missing) {
      const isNamed = isNewFile || head.key === own || head.key === signer
      if (!isNamed || !isSigned(head, keys))
        throw new UntrustedHead(`In Postgres ${nameOf(head)}, which ${headFile.path} lacks`, head)
      signer = head.key
    }
    await headFile.append(missing)
    after = missing.at(-1)
  }
}

/** Resolves to the newest head. Throws UntrustedHead and ReplacedKey. */
export const adoptHeads = async (sql: Sql, headFile: HeadFile, key: SigningKey): Promise<Head | undefined> => {
  const keys = new Map([...(await publicKeys(sql)), [key.id, key.publicKey]])
  const [stored, written] = [await lastHead(sql), await trustedLast(headFile, keys)]
  if (written !== undefined && written.key !== key.id && (await signersIn(headFile.path, keys)).has(key.id))
    throw new ReplacedKey(headFile.path, written, key.id)
  if (written !== undefined && (stored === undefined || isLater(written, stored)))
    await storeHeadsOfFile(sql, headFile.path, keys, stored)
  await appendHeadsOfPostgres(sql, headFile, keys, key.id)
  return headFile.last()
}

/**
 * The newest head, from the file and Postgres, for head signing. Each generation begins with a head that `ledger evidence accept` has
 * signed: a row of a restart begins none, since every writer of the database can write one. Throws SignedEventsLost and UntrustedHead.
 */
export const newestHead = async (sql: Sql, headFile: HeadFile, key: SigningKey): Promise<Head | undefined> => {
  const generation = (await lastRestart(sql))?.generation ?? FIRST_GENERATION
  const written = await headFile.last()
  if (written && written.generation > generation)
    throw new SignedEventsLost(
      `The file ${headFile.path} has heads of generation ${written.generation}, which Postgres does not know: it was restored from an older backup.`,
    )
  const newest = await adoptHeads(sql, headFile, key)
  if (generation > (newest?.generation ?? FIRST_GENERATION))
    throw new SignedEventsLost(
      `Postgres has a restart of generation ${generation}, and no head that accepts it is signed.`,
    )
  return newest
}
