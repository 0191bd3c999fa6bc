import type { IdempotencyRecord } from '../../../streams/idempotencyRecord.ts'
import { type Id, type IdPrefix, idFromBytes } from '../../../streams/ids.ts'
import { canonicalJson, hexSha256, hmac } from '../../lib/identifiers.ts'
import type { JsonObject } from '../../ports.ts'

/**
 * The story of an idempotency key.
 *
 * 1. *Record* (record.ts): key, caller and a fingerprint of the request. The id of a new resource is derived from the
 *    key, and the record is in the first event of its stream, so one append binds the key and creates the resource
 *    (creation.ts). A command on an existing resource binds its key in a stream of its own first (conflicts.ts).
 * 2. *Lock* (keyLock.ts): concurrent requests with the key wait for the first of them.
 * 3. *Conflicts* (conflicts.ts): a later request with the key is the same one and is answered with the first result, or
 *    another one and is refused.
 * 4. *Outcomes* (keyStatus.ts): the result under a key, for a caller that lost the answer.
 * 5. *Retention* (retention.ts): the record says until when its key is remembered.
 */

export type KeyScope = { tenant: string; subject: string; client: string; operation: string }

/** A fresh token of the same caller does not change the scope of a key; another caller does. */
export type ScopedKey = {
  readonly scope: KeyScope
  readonly key: string
  /** The secret of the log (idSecret.ts). */
  readonly secret: Uint8Array
}

const hmacOfKey = (use: string, { scope, key, secret }: ScopedKey): Buffer =>
  hmac(secret, [use, scope.tenant, scope.subject, scope.client, scope.operation, key])

/** The same key in the same scope always gives the same id; without the secret it cannot be computed. */
export const idOfKey = <P extends IdPrefix>(prefix: P, key: ScopedKey): Id<P> =>
  idFromBytes(prefix, hmacOfKey(prefix, key))

/** The idempotency record of a request. `request` is the validated request without server-made values. */
export const newIdempotencyRecord = (key: ScopedKey, request: JsonObject, expiresAt: string): IdempotencyRecord => ({
  key_hash: hmacOfKey('idempotency key', key).toString('hex'),
  caller: { subject: key.scope.subject, client: key.scope.client },
  fingerprint: hexSha256(canonicalJson(request)),
  request: request as IdempotencyRecord['request'],
  expires_at: expiresAt,
})
