import type { Ledger } from '../../commands/commandHandler.ts'
import { newIdempotencyRecord, idOfKey, type ScopedKey } from '../../commands/identifiers.ts'
import { bindKey } from '../../commands/idempotencyKeyConflicts.ts'
import { expiryOf } from '../../commands/idempotencyRetention.ts'
import type { Principal } from '../../identity/principal.ts'
import type { JsonObject } from '../../ports.ts'
import type { IdempotencyRecord } from '../../../streams/idempotencyRecord.ts'
import { Problem } from '../response/problemCatalogue.ts'
import { problemOfKeyConflict } from '../response/rejectionDetails.ts'
import type { AnyRoute, Call } from '../route.ts'

/** The Idempotency-Key header: its syntax, its scope, and the idempotency record that a command stores for it. */

/**
 * 1 to 255 visible ASCII characters, bare or as a structured-field string (RFC 8941 §3.3.3); both forms are the same
 * key.
 */
export const KEY_HEADER = /^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$/

/** The text of the key. Throws Problem `idempotency_key_invalid`. */
export const parseKey = (header: string): string => {
  if (!KEY_HEADER.test(header))
    throw new Problem('idempotency_key_invalid', { detail: '1 to 255 visible ASCII characters, quoted or bare.' })
  return header.startsWith('"') ? header.slice(1, -1).replaceAll(/\\(["\\])/g, '$1') : header
}

/** The key in the scope of tenant, caller and operation; undefined where the route ignores keys or none was sent. */
export const scopedKeyOf = async (
  ledger: Ledger,
  declared: AnyRoute,
  principal: Principal,
  [header, ...furtherHeaders]: readonly string[] = [],
): Promise<ScopedKey | undefined> => {
  if (!declared.idempotencyKey) return undefined
  if (header === undefined) {
    if (declared.idempotencyKey === 'required') throw new Problem('idempotency_key_missing')
    return undefined
  }
  if (furtherHeaders.length > 0) throw new Problem('idempotency_key_invalid', { detail: 'One Idempotency-Key header.' })
  const key = parseKey(header)
  const { tenant, subject, client } = principal
  const secret = await ledger.idSecret()
  return { scope: { tenant, subject, client, operation: declared.operationId }, key, secret }
}

type AnyCall = Call<unknown, unknown, unknown>
type Retention = Pick<AnyCall, 'ledger' | 'idempotencyRetentionMs'>

/** The idempotency record of a request with this key. */
export const idempotencyRecordOf = (
  key: ScopedKey,
  { ledger, idempotencyRetentionMs }: Retention,
  request: JsonObject,
): IdempotencyRecord => newIdempotencyRecord(key, request, expiryOf(ledger.world, idempotencyRetentionMs))

/** The idempotency record of this call; null when it has no key. */
export const idempotencyRecordIfKeyed = (
  call: Pick<AnyCall, 'idempotency'> & Retention,
  request: JsonObject,
): IdempotencyRecord | null =>
  call.idempotency === undefined ? null : idempotencyRecordOf(call.idempotency, call, request)

type Keyed = Pick<AnyCall, 'idempotency' | 'ledger' | 'context'>

/**
 * Binds the key of a command on an existing resource, whose id is not derived from the key. Without the binding one key
 * could be used once for each resource. `about`: the id of the resource. Throws the Problem of a key that belongs to
 * another request.
 */
export const bindKeyOf = async (
  { idempotency, ledger, context }: Keyed,
  record: IdempotencyRecord | null,
  { about, path }: { readonly about: string; readonly path: string },
): Promise<void> => {
  if (idempotency === undefined || record === null) return
  const conflict = await bindKey(
    ledger,
    { idFromKey: idOfKey('bnd', idempotency), resourceId: about, idempotencyRecord: record },
    context,
  )
  if (conflict) throw problemOfKeyConflict(conflict, path)
}
