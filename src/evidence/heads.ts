import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { z } from 'zod'
import { canonicalJson } from '../lib/identifiers.ts'
import { isConsistent } from './merkle.ts'

/** Signed heads: the size and the root of the tree at a time, with the proof that the tree of the head before is its beginning. */

const HEX_HASH = /^[0-9a-f]{64}$/
const KEY_ID_CHARS = 16

export const FIRST_GENERATION = 1

const hash = z.string().regex(HEX_HASH)
const size = z.int().min(0)

/** The acceptance of a restored log, in the first head of its generation. */
const restartSchema = z.strictObject({
  kept_size: size,
  /** The head that is abandoned: the newest one before the acceptance. */
  abandoned_size: size,
  abandoned_root: hash,
  /** The id of the event that records the acceptance. */
  audit_record: z.string(),
  accepted: z.strictObject({
    by: z.string(),
    reason: z.string(),
    /** The generation of the abandoned head. */
    abandoned_generation: z.int().min(1),
  }),
})
export type HeadRestart = z.infer<typeof restartSchema>

export const headSchema = z.strictObject({
  v: z.literal(1),
  /** The id of the event that identifies the log. */
  log: z.string(),
  /** One more for each accepted restore; 1 at first. */
  generation: z.int().min(1),
  /** Zero only where nothing of a log was kept. */
  tree_size: size,
  root: hash,
  /** The position of the last event of the tree. */
  position: z.string().regex(/^\d+$/),
  time: z.iso.datetime(),
  /** The size of the head before, or the number of kept events after a restore; zero for the first head. */
  previous_size: size,
  restart: restartSchema.optional(),
  key: z.string(),
  /** The consistency proof from `previous_size` (RFC 9162, section 2.1.4), which proves itself and is not signed. */
  consistency: z.array(hash),
  /** Ed25519 over the canonical bytes (RFC 8785) of all members but `consistency` and `signature`, base64. */
  signature: z.base64(),
})
export type Head = z.infer<typeof headSchema>
export type UnsignedHead = Omit<Head, 'key' | 'signature'>

export type SigningKey = { readonly id: string; readonly privateKey: KeyObject; readonly publicKey: string }

/** The beginning of the SHA-256 of the public key (SubjectPublicKeyInfo, DER), in hexadecimal. */
export const keyIdOf = (spki: Uint8Array): string =>
  createHash('sha256').update(spki).digest('hex').slice(0, KEY_ID_CHARS)

export const signingKeyOf = (privateKey: KeyObject): SigningKey => {
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  return { id: keyIdOf(spki), privateKey, publicKey: spki.toString('base64') }
}

const signedBytes = ({ consistency: _, ...head }: Omit<Head, 'signature'>): Buffer => Buffer.from(canonicalJson(head))

export const signHead = (unsigned: UnsignedHead, { id, privateKey }: SigningKey): Head => {
  const head = { ...unsigned, key: id }
  return { ...head, signature: sign(null, signedBytes(head), privateKey).toString('base64') }
}

/** Public keys (base64 of SubjectPublicKeyInfo) by their ids. */
export type PublicKeys = ReadonlyMap<string, string>

/** Whether the signature is that of a known key, whose id follows from it: the keys may be of a table that others write. */
export const isSigned = ({ signature, ...head }: Head, keys: PublicKeys): boolean => {
  const spki = Buffer.from(keys.get(head.key) ?? '', 'base64')
  if (keyIdOf(spki) !== head.key) return false
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
  return verify(null, signedBytes(head), key, Buffer.from(signature, 'base64'))
}

const bytesOf = (hex: string): Buffer => Buffer.from(hex, 'hex')

/** Whether the tree of `later` begins with that of `earlier`, which is the head before it in its generation. */
export const follows = (earlier: Head, later: Head): boolean =>
  earlier.tree_size === later.previous_size &&
  isConsistent(
    { size: earlier.tree_size, root: bytesOf(earlier.root) },
    { size: later.tree_size, root: bytesOf(later.root) },
    later.consistency.map(bytesOf),
  )

/** Heads are ordered by generation and size. */
export const isLater = (one: Pick<Head, 'generation' | 'tree_size'>, other: typeof one): boolean =>
  one.generation > other.generation || (one.generation === other.generation && one.tree_size > other.tree_size)

/** The line of a head in files, without the line feed. */
export const lineOf = (head: Head): string => canonicalJson(head)

/** The head in a line of a file; the reason where it has none. */
export const parseHead = (line: string): Head | { readonly unreadable: string } => {
  try {
    const parsed = headSchema.safeParse(JSON.parse(line))
    if (parsed.success) return parsed.data
    const { path, message } = parsed.error.issues[0] ?? { path: [], message: 'it is not a head' }
    return { unreadable: `${path.join('.') || 'the line'}: ${message}` }
  } catch {
    return { unreadable: 'the line is not JSON' }
  }
}
