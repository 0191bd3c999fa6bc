import type { Ledger } from '../../commands/commandHandler.ts'
import { newIdempotencyRecord, idOfKey, type ScopedKey } from '../../commands/idempotency/record.ts'
import { recordKey, type KeyUse, recordedKeyConflict } from '../../commands/idempotency/conflicts.ts'
import { expiryOf } from '../../commands/idempotency/retention.ts'
import type { Principal } from '../../identity/principal.ts'
import type { JsonObject } from '../../ports.ts'
import { type AnyEvent, isRejection, type Rejection } from '../../../streams/decider.ts'
import type { IdempotencyRecord } from '../../../streams/idempotencyRecord.ts'
import { Problem, problemOfKeyConflict, problemOfRejection } from '../problems/problemCatalogue.ts'
import type { AnyRoute } from '../route.ts'
import type { AnyCall } from '../services.ts'

/** The Idempotency-Key header: its syntax, its scope, and the idempotency record that a command stores for it. */

/** 1 to 255 visible ASCII characters, bare or as a string of RFC 8941 §3.3.3; both are the same key. */
export const KEY_HEADER = /^(?:[!#-~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$/

/** The text of the key. Throws Problem `idempotency_key_invalid`. */
export const parseKey = (header: string): string => {
  if (!KEY_HEADER.test(header))
    throw new Problem('idempotency_key_invalid', {
      detail: 'Must be 1 to 255 visible ASCII characters, with or without double quotes around them.',
    })
  return header.startsWith('"') ? header.slice(1, -1).replaceAll(/\\(["\\])/g, '$1') : header
}

/** The key in the scope of tenant, caller and operation; undefined where the route ignores keys or none was sent. */
export const scopedKeyOf = async (
  ledger: Ledger,
  route: AnyRoute,
  principal: Principal,
  [header, ...furtherHeaders]: readonly string[] = [],
): Promise<ScopedKey | undefined> => {
  if (!route.idempotencyKey) return undefined
  if (header === undefined) {
    if (route.idempotencyKey === 'required') throw new Problem('idempotency_key_missing')
    return undefined
  }
  if (furtherHeaders.length > 0)
    throw new Problem('idempotency_key_invalid', { detail: 'Send exactly one Idempotency-Key header.' })
  const key = parseKey(header)
  const { tenant, subject, client } = principal
  const secret = await ledger.idSecret()
  return { scope: { tenant, subject, client, operation: route.operationId }, key, secret }
}

type Retention = Pick<AnyCall, 'ledger' | 'idempotencyRetentionMs'>

export const idempotencyRecordOf = (
  key: ScopedKey,
  { ledger, idempotencyRetentionMs }: Retention,
  request: JsonObject,
): IdempotencyRecord => newIdempotencyRecord(key, request, expiryOf(ledger.world, idempotencyRetentionMs))

export const idempotencyRecordIfKeyed = (
  call: Pick<AnyCall, 'idempotency'> & Retention,
  request: JsonObject,
): IdempotencyRecord | null =>
  call.idempotency === undefined ? null : idempotencyRecordOf(call.idempotency, call, request)

type Keyed = Pick<AnyCall, 'idempotency' | 'ledger' | 'context'>
/** `about`: the id of the resource, below `path`. */
type Named = { readonly about: string; readonly path: string }

/**
 * Binds the key of a command on an existing resource, whose id is not derived from it, so that it is used for one
 * resource only. If the command is refused (`decided`), the key remains free. Throws Problem.
 */
export const bindKeyOf = async (
  call: Keyed,
  record: IdempotencyRecord | null,
  { decided, ...named }: Named & { readonly decided: readonly AnyEvent[] | Rejection },
): Promise<void> => {
  if (isRejection(decided)) {
    await isKeyBound(call, record, named)
    throw problemOfRejection(decided)
  }
  const { idempotency, ledger, context } = call
  if (idempotency === undefined || record === null) return
  const conflict = await recordKey(ledger, boundKey(idempotency, record, named), context)
  if (conflict) throw problemOfKeyConflict(conflict, named.path)
}

/** Whether the key is bound to this request. Throws the Problem of a key that belongs to another request. */
export const isKeyBound = async (
  { idempotency, ledger }: Pick<Keyed, 'idempotency' | 'ledger'>,
  record: IdempotencyRecord | null,
  named: Named,
): Promise<boolean> => {
  if (idempotency === undefined || record === null) return false
  const conflict = await recordedKeyConflict(ledger, boundKey(idempotency, record, named))
  if (conflict === 'unbound') return false
  if (conflict) throw problemOfKeyConflict(conflict, named.path)
  return true
}

const boundKey = (key: ScopedKey, idempotencyRecord: IdempotencyRecord, { about }: Named): KeyUse => ({
  idFromKey: idOfKey('bnd', key),
  resourceId: about,
  idempotencyRecord,
})
