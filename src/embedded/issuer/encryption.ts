import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { JsonObject } from '../../ports.ts'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
const PURPOSE = 'ledger issuer record 1'

const keyFrom = (secret: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES))

/**
 * Encrypts a document with a key derived from the secret of its record: the holder of the secret can read it, and a
 * dump of the database, which has only the secret's hash, reveals neither other secrets nor who logged in. The secret
 * must have the entropy of a key.
 */
export const encrypt = (secret: string, document: object): Buffer => {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, keyFrom(secret), iv)
  const closed = Buffer.concat([cipher.update(JSON.stringify(document), 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), closed])
}

/** Throws an Error if it was encrypted with another secret, or changed since. */
export const decrypt = (secret: string, encrypted: Buffer): JsonObject => {
  const iv = encrypted.subarray(0, IV_BYTES)
  const decipher = createDecipheriv(CIPHER, keyFrom(secret), iv, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(encrypted.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
  const opened = Buffer.concat([decipher.update(encrypted.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
  return JSON.parse(opened.toString('utf8')) as JsonObject
}
