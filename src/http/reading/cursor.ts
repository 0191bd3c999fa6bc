import { createCipheriv, createDecipheriv, createHash, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { canonicalJson } from '../../lib/identifiers.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { DAY_MS } from '../../lib/time.ts'

/** Encrypted cursors: a client can neither read nor change them, nor use them for another list or tenant. */
export type Cursors = {
  /** `binding`: what the cursor is valid for. `key`: the sort key at the end of the page. */
  readonly encrypt: (binding: object, key: object) => string
  /** The key of the cursor. Throws Problem `cursor_invalid` for anything that was not made for this binding. */
  readonly open: (binding: object, cursor: string) => unknown
}

const LIFETIME_MS = 3 * DAY_MS
const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const CURSOR_CHARS_MAX = 1_024

/** `secret` is the same on every instance. The binding is authenticated data of the cipher. */
export const createCursors = (secret: Uint8Array, now: () => number): Cursors => {
  // Beside event streams of a whole history, sealing with the bytes of the key took 18 % of the time: 110 µs instead of 23.
  const cipherKey = createSecretKey(createHash('sha256').update('cursor').update(secret).digest())
  return {
    encrypt: (binding, key) => {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, cipherKey, nonce).setAAD(Buffer.from(canonicalJson(binding)))
      const parts = [nonce, cipher.update(JSON.stringify({ key, until: now() + LIFETIME_MS })), cipher.final()]
      return Buffer.concat([...parts, cipher.getAuthTag()]).toString('base64url')
    },
    open: (binding, cursor) => {
      const { key, until } = decrypt(cipherKey, binding, cursor)
      if (until < now()) throw new Problem('cursor_expired')
      return key
    },
  }
}

const decrypt = (cipherKey: KeyObject, binding: object, cursor: string): { key: unknown; until: number } => {
  const bytes = Buffer.from(cursor.slice(0, CURSOR_CHARS_MAX), 'base64url')
  if (bytes.toString('base64url') !== cursor || bytes.length <= NONCE_BYTES + TAG_BYTES)
    throw new Problem('cursor_invalid')
  try {
    const decipher = createDecipheriv(CIPHER, cipherKey, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(canonicalJson(binding)))
      .setAuthTag(bytes.subarray(-TAG_BYTES))
    const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    return JSON.parse(text.toString()) as { key: unknown; until: number }
  } catch {
    throw new Problem('cursor_invalid')
  }
}
