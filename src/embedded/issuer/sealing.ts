import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { JsonObject } from '../../ports.ts'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
const PURPOSE = 'ledger issuer record 1'

const keyFrom = (secret: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES))

/**
 * Closes a document with a key that is made of the secret it belongs to: who holds the secret can read it, and a dump of
 * the database, which has only the secret's hash, tells nothing, neither other secrets within nor who logged in.
 * The secret must have the randomness of a key: a guessable one would open its document.
 */
export const seal = (secret: string, document: object): Buffer => {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, keyFrom(secret), iv)
  const closed = Buffer.concat([cipher.update(JSON.stringify(document), 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), closed])
}

/** Throws an Error when it was sealed with another secret, or changed since. */
export const unseal = (secret: string, sealed: Buffer): JsonObject => {
  const iv = sealed.subarray(0, IV_BYTES)
  const decipher = createDecipheriv(CIPHER, keyFrom(secret), iv, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  const opened = Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
  return JSON.parse(opened.toString('utf8')) as JsonObject
}
