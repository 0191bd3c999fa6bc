import { createHmac, timingSafeEqual } from 'node:crypto'
import type { ApiKeyId } from '../../streams/ids.ts'
import { formatKey, type KeyEnvironment, parseKey, prefixOf } from './apiKeyFormat.ts'

/**
 * Makes the keys of this environment, and recognises them.
 *
 * A secret is not drawn but derived, from the key's id and a random nonce, with the pepper: the nonce is in the event, the
 * pepper in no store. So the answer to a repeated request can show the same key byte for byte, and yet nothing is kept that
 * authenticates: not in the log, not in a table, not in a backup of either. Whoever has the log and the pepper has every
 * key, which is why the two are kept apart; without the pepper a nonce is as good as any other random number.
 */
export type ApiKeySecrets = {
  readonly environment: KeyEnvironment
  /** `lk_dev_…`, without the secret. */
  readonly prefixOf: (id: ApiKeyId) => string
  /** The whole key, as its holder gets it. `nonce`: as it is stored. */
  readonly keyOf: (id: ApiKeyId, nonce: string) => string
  /** What is stored of the key that belongs to this nonce. */
  readonly hashOf: (id: ApiKeyId, nonce: string) => string
  /** The hash of a secret that somebody sent, to be compared with what is stored. */
  readonly hashOfSent: (id: ApiKeyId, secret: string) => string
}

/** `pepper`: the setting API_KEY_PEPPER. Another pepper is the end of every key. */
export const createApiKeySecrets = (environment: KeyEnvironment, pepper: string): ApiKeySecrets => {
  // What the pepper is used for stands in front, so that no answer of one use is an answer of the other.
  const mac = (use: 'secret' | 'hash', id: ApiKeyId, text: string) =>
    createHmac('sha256', pepper).update(JSON.stringify([use, id, text]))
  const keyOf: ApiKeySecrets['keyOf'] = (id, nonce) => formatKey(environment, id, mac('secret', id, nonce).digest())
  const hashOfSent: ApiKeySecrets['hashOfSent'] = (id, secret) => mac('hash', id, secret).digest('hex')
  return {
    environment,
    prefixOf: id => prefixOf(environment, id),
    keyOf,
    hashOf: (id, nonce) => {
      const made = parseKey(keyOf(id, nonce))
      if (typeof made === 'string') throw new Error(`A key was made that is none: ${made}.`)
      return hashOfSent(id, made.secret)
    },
    hashOfSent,
  }
}

/** In a time that does not tell where they differ. */
export const isSameHash = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
