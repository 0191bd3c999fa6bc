import { createHmac, timingSafeEqual } from 'node:crypto'
import type { ApiKeyId } from '../../streams/ids.ts'
import { formatKey, type KeyEnvironment, parseKey, prefixOf } from './apiKeyFormat.ts'

/**
 * Derives the secrets and hashes of the API keys of this environment.
 *
 * A secret is derived from the key's id and a random nonce with the pepper (HMAC). The nonce is stored in the event,
 * the pepper in no store. So a replay can show the same key byte for byte, while no log, table or backup holds anything
 * that authenticates. Log and pepper together reveal every key, so they are kept apart; without the pepper a nonce is
 * worthless.
 */
export type ApiKeySecrets = {
  readonly environment: KeyEnvironment
  /** `lk_dev_…`, without the secret. */
  readonly prefixOf: (id: ApiKeyId) => string
  /** The whole key, as its holder gets it. `nonce`: as it is stored. */
  readonly keyOf: (id: ApiKeyId, nonce: string) => string
  /** The stored hash of the key with this nonce. */
  readonly hashOf: (id: ApiKeyId, nonce: string) => string
  /** The hash of a received secret, to be compared with the stored one. */
  readonly hashOfSent: (id: ApiKeyId, secret: string) => string
}

/** `pepper`: the setting API_KEY_PEPPER. A new pepper invalidates every key. */
export const createApiKeySecrets = (environment: KeyEnvironment, pepper: string): ApiKeySecrets => {
  // Domain separation: a secret is never equal to a hash.
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
      if (typeof made === 'string') throw new Error(`A key that was made cannot be parsed: ${made}.`)
      return hashOfSent(id, made.secret)
    },
    hashOfSent,
  }
}

/** Compares in constant time. */
export const isSameHash = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
